"""Checkpointing: the same gradients to the bit, fewer values kept, one more forward pass."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint_sequential

from descend.autodiff.checkpointing import Checkpointed, Layer, State, backward

pytestmark = pytest.mark.system("gradient-checkpointing")
DEPTH, WIDTH = 16, 32


def chain() -> tuple[list[Layer], State]:
    """A deep MLP: the state is the activation and all weights."""
    random = torch.Generator().manual_seed(0)
    weights = [torch.randn(WIDTH, WIDTH, generator=random, dtype=torch.float64) / 6 for _ in range(DEPTH)]

    def layer(i: int) -> Layer:
        return lambda state: ((state[0] @ state[1 + i]).tanh(), *state[1:])

    x = torch.randn(64, WIDTH, generator=random, dtype=torch.float64)
    return [layer(i) for i in range(DEPTH)], (x, *weights)


def run(segments: int) -> Checkpointed:
    layers, state = chain()
    ones = (torch.ones_like(state[0]), *(torch.zeros_like(w) for w in state[1:]))
    return backward(layers, state, ones, segments)


def plain() -> tuple[Tensor, ...]:
    layers, state = chain()
    leaves = tuple(t.requires_grad_() for t in state)
    end: State = leaves
    for layer in layers:
        end = layer(end)
    return torch.autograd.grad(end[0].sum(), leaves)


@pytest.mark.system("gradient-checkpointing", "identical")
@pytest.mark.parametrize("segments", [1, 2, 3, 4, 7, 16])
def test_gradients_are_identical(segments: int) -> None:
    for ours, theirs in zip(run(segments).gradients, plain(), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.system("gradient-checkpointing", "counted")
def test_what_is_kept_and_what_is_computed_again() -> None:
    whole, roots = run(1), run(4)
    assert (whole.forwards, whole.kept) == (DEPTH, 1 + DEPTH)
    assert roots.kept == 4 + 4  # √L states and √L activations
    assert roots.forwards == DEPTH + DEPTH - 4  # all but the last segment twice: less than one more pass
    assert min(range(1, DEPTH + 1), key=lambda k: run(k).kept) == math.isqrt(DEPTH)
    assert roots.peak_bytes < 0.7 * whole.peak_bytes
    assert torch.equal(whole.outputs[0], roots.outputs[0])


@pytest.mark.system("gradient-checkpointing", "identical")
def test_torchs_own_checkpointing_agrees() -> None:
    random = torch.Generator().manual_seed(0)
    weights = [torch.randn(8, 8, generator=random, dtype=torch.float64).requires_grad_() for _ in range(6)]
    x = torch.randn(3, 8, generator=random, dtype=torch.float64)
    functions = [lambda t, w=w: (t @ w).tanh() for w in weights]
    out = checkpoint_sequential(functions, 3, x, use_reentrant=False)
    theirs = torch.autograd.grad(out.sum(), weights)
    layers: list[Layer] = [lambda s, i=i: ((s[0] @ s[1 + i]).tanh(), *s[1:]) for i in range(6)]  # type: ignore[misc]
    zeros = tuple(torch.zeros_like(w) for w in weights)
    ours = backward(layers, (x, *(w.detach() for w in weights)), (torch.ones_like(x), *zeros), 3)
    for a, b in zip(ours.gradients[1:], theirs, strict=True):
        torch.testing.assert_close(a, b)
