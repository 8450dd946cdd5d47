"""Neuron and dense layer in all forms, half-planes, and the collapse of linear stacks."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from descend.models.mlp import MLP, MLPConfig
from descend.ops.dense import (
    Layer,
    collapse,
    decision_line,
    dense,
    dense_by_index,
    dense_columns,
    half_space,
    neuron,
    step,
)
from descend.theory.perceptron import fewest_errors
from tests.close import close


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def stack(widths: list[int]) -> list[Layer]:
    return [(normal(o, n, seed=i), normal(o, seed=50 + i)) for i, (n, o) in enumerate(pairwise(widths))]


@pytest.mark.system("neuron-and-dense-layer")
@pytest.mark.system("neuron-and-dense-layer", "three-forms")
@settings(max_examples=20, deadline=None, derandomize=True)
@given(n=st.integers(1, 6), out=st.integers(1, 6), m=st.integers(1, 5))
def test_index_matrix_and_batch_form_are_torch_linear(n: int, out: int, m: int) -> None:
    [(w, b)], a = stack([n, out]), normal(n, m, seed=3)
    z = dense_columns(w, b, a)
    close(z.T, F.linear(a.T, w, b))
    close(z, torch.stack([dense(w, b, a[:, i]) for i in range(m)], dim=1))
    close(z, torch.stack([dense_by_index(w, b, a[:, i]) for i in range(m)], dim=1))


@pytest.mark.system("neuron-and-dense-layer")
@pytest.mark.system("neuron-and-dense-layer", "timed")
def test_one_product_is_faster_than_a_loop_over_samples() -> None:
    [(w, b)], a = stack([20, 10]), normal(20, 1000)
    began = time.perf_counter()
    loop = torch.stack([dense(w, b, a[:, i]) for i in range(1000)], dim=1)
    between = time.perf_counter()
    at_once = dense_columns(w, b, a)
    assert time.perf_counter() - between < between - began
    close(at_once, loop)


@pytest.mark.system("neuron-and-dense-layer")
@pytest.mark.system("neuron-and-dense-layer", "neuron")
@pytest.mark.parametrize("activation", [torch.sigmoid, torch.relu, torch.tanh])
def test_a_neuron_is_a_dense_layer_of_one_unit(activation: object) -> None:
    x, w, b = normal(5, 3), normal(3, seed=1), normal(1, seed=2)[0]
    close(neuron(x, w, b, activation), activation(F.linear(x, w[None], b[None]))[:, 0])  # type: ignore[arg-type,operator]
    close(neuron(x[0], w, b, activation), neuron(x, w, b, activation)[0])  # type: ignore[arg-type]
    assert torch.autograd.gradcheck(
        lambda w, b: neuron(x, w, b, torch.tanh), (w.clone().requires_grad_(), b.clone().requires_grad_())
    )


@pytest.mark.system("neuron-and-dense-layer")
@pytest.mark.system("neuron-and-dense-layer", "neuron", "half-plane")
def test_half_plane_of_a_neuron() -> None:
    """VOM 5.1: above x2 = −2 x1 + 3 the neuron fires; the boundary itself is class 1 of the step."""
    w, b = torch.tensor([2.0, 1.0]), torch.tensor(-3.0)
    slope, intercept = decision_line(w, b)
    assert (float(slope), float(intercept)) == (-2.0, 3.0)
    points = torch.tensor([[0.0, 4.0], [0.0, 3.0], [0.0, 2.0]])
    assert half_space(points, w, b).tolist() == [1, 0, -1]
    assert neuron(points, w, b, step).tolist() == [1, 1, 0]
    with pytest.raises(ValueError, match="the second not 0"):
        decision_line(torch.tensor([1.0, 0.0]), b)


@pytest.mark.system("linear-collapse")
@pytest.mark.system("linear-collapse", "collapse", "rank")
@settings(max_examples=20, deadline=None, derandomize=True)
@given(widths=st.lists(st.integers(1, 5), min_size=2, max_size=6))
def test_collapsed_map_is_the_network(widths: list[int]) -> None:
    layers, x = stack(widths), normal(7, widths[0], seed=9)
    affine = [(0.5 + i, -1.0 + i) for i in range(len(layers))]
    a = x
    for (w, b), (scale, shift) in zip(layers, affine, strict=True):
        a = scale * F.linear(a, w, b) + shift
    close(F.linear(x, *collapse(layers, affine)), a)
    assert torch.linalg.matrix_rank(collapse(layers)[0]) <= min(widths)


@pytest.mark.system("linear-collapse")
@pytest.mark.system("linear-collapse", "xor")
def test_a_deep_linear_mlp_is_one_layer_and_cannot_learn_xor() -> None:
    torch.manual_seed(0)
    model = MLP(MLPConfig(2, (8, 8), 1, activations=("identity",)))
    x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = torch.tensor([-1.0, 1.0, 1.0, -1.0])
    layers = [(m.weight.detach(), m.bias.detach()) for m in model.modules() if isinstance(m, nn.Linear)]
    close(F.linear(x, *collapse(layers)), model(x))
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(200):
        optimizer.zero_grad()
        (model(x)[:, 0] - y).square().mean().backward()
        optimizer.step()
    assert ((model(x)[:, 0] > 0) == (y > 0)).sum() <= 3
    assert fewest_errors(x, y) == 1
    assert (model(x)[:, 0] - y).square().mean() > 0.99  # least squares answers 0 everywhere


@pytest.mark.system("linear-collapse")
def test_wrong_number_of_activations_is_named() -> None:
    with pytest.raises(ValueError, match="2 layers and 1 activations"):
        collapse(stack([2, 3, 1]), [(1.0, 0.0)])


def test_the_decision_line_of_any_weights() -> None:
    w, b = torch.tensor([2.0, 4.0]), torch.tensor(-3.0)
    slope, intercept = decision_line(w, b)
    close(slope, torch.tensor(-0.5))
    close(intercept, torch.tensor(0.75))
    assert neuron(torch.tensor([[1.0, 0.25]]), w, b, torch.relu).item() == 0  # x₂ = −0.5 + 0.75
