"""Layer objects: gradients equal autograd's, and a network trains without it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.autodiff.layers import Elementwise, Layer, Linear, backward, forward, update
from tests.close import close

pytestmark = pytest.mark.system("mlp-backpropagation")


def network(seed: int) -> tuple[list[Layer], Tensor]:
    random = torch.Generator().manual_seed(seed)
    shapes = ((2, 8), (8,), (8, 1), (1,))
    w1, b1, w2, b2 = (torch.randn(s, generator=random, dtype=torch.float64) for s in shapes)
    return [Linear(w1, b1), Elementwise("tanh"), Linear(w2, b2)], torch.randn(40, 2, generator=random).double()


def test_gradients_are_autograds() -> None:
    layers, x = network(0)
    y = forward(layers, x)
    g_x, gradients = backward(layers, y)
    first, last = layers[0], layers[2]
    assert isinstance(first, Linear)
    assert isinstance(last, Linear)
    leaves = [t.clone().requires_grad_() for t in (first.w, first.b, last.w, last.b, x)]
    w1, b1, w2, b2, x_ = leaves
    theirs = torch.autograd.grad((((x_ @ w1 + b1).tanh() @ w2 + b2) ** 2).sum() / 2, leaves)
    for ours, oracle in zip([*gradients[0], *gradients[2], g_x], theirs, strict=True):
        close(ours, oracle)


@pytest.mark.system("mlp-backpropagation", "layer-objects")
def test_it_trains_without_autograd() -> None:
    layers, x = network(1)
    target = (x[:, :1] * x[:, 1:]).tanh()
    losses = []
    with torch.no_grad():
        for _ in range(400):
            error = forward(layers, x) - target
            losses.append(error.square().mean().item())
            update(layers, backward(layers, error / len(x))[1], rate=0.2)
    assert losses[-1] < 0.05 * losses[0]
