"""Every primitive: both products against torch, and ⟨ȳ, J ẋ⟩ = ⟨Jᵀ ȳ, ẋ⟩."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from descend.autodiff.primitives import ADD, DIV, MATMUL, MUL, PRIMITIVES, SUB, Primitive, chain_backward
from tests.close import close

pytestmark = pytest.mark.system("vjp-and-jvp-primitives")
TWO = {"add", "sub", "mul", "div", "matmul"}


def positive(*shape: int, seed: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.5


def check(primitive: Primitive, inputs: list[Tensor]) -> None:
    y = primitive.value(*inputs)
    y_bar = positive(*y.shape, seed=7) - 0.8
    tangents = [positive(*x.shape, seed=8 + i) - 0.9 for i, x in enumerate(inputs)]
    ours = primitive.vjp(y_bar, y, *inputs)
    theirs = torch.func.vjp(primitive.value, *inputs)[1](y_bar)
    for a, b in zip(ours, theirs, strict=True):
        close(a, b)
    y_dot = primitive.jvp(tangents, y, *inputs)
    close(y_dot, torch.func.jvp(primitive.value, tuple(inputs), tuple(tangents))[1])
    close((y_bar * y_dot).sum(), sum((a * t).sum() for a, t in zip(ours, tangents, strict=True)))


@pytest.mark.system("vjp-and-jvp-primitives", "vjp", "jvp")
@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_products_of_every_primitive(name: str) -> None:
    shapes = [(3, 4), (4, 2)] if name == "matmul" else [(3, 4)] * (2 if name in TWO else 1)
    check(PRIMITIVES[name], [positive(*shape, seed=i) for i, shape in enumerate(shapes)])


@pytest.mark.system("vjp-and-jvp-primitives", "vjp")
@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.sampled_from([ADD, SUB, MUL, DIV]), st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=3))
def test_broadcasting(primitive: Primitive, axes: list[tuple[int, int]]) -> None:
    """An axis is stretched on the left (1), on the right (2) or on neither side."""
    a = [1 if side == 1 else n for n, side in axes]
    b = [1 if side == 2 else n for n, side in axes]
    check(primitive, [positive(*a, seed=1), positive(*b, seed=2)])
    check(primitive, [positive(2, *a, seed=1), positive(*b, seed=2)])


@pytest.mark.system("vjp-and-jvp-primitives", "vjp")
@pytest.mark.parametrize(
    ("a", "b"),
    [((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 2)), ((5, 3, 4), (4, 2)), ((3, 4), (5, 4, 2)), ((2, 3, 4), (4,))],
)
def test_matmul_of_vectors_and_stacks(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check(MATMUL, [positive(*a, seed=1), positive(*b, seed=2)])


@pytest.mark.system("vjp-and-jvp-primitives", "chain")
def test_a_chain_of_jacobians() -> None:
    """VOM 2.5.8: h = (x₁+x₂, x₁−x₂), L = ‖h‖², x = (3, 1); then a longer chain against J₁ᵀ..J_Lᵀ g."""
    j = torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64)
    h = j @ torch.tensor([3.0, 1.0], dtype=torch.float64)
    close(chain_backward([j], 2 * h)[0], torch.tensor([12.0, 4.0], dtype=torch.float64))
    chain = [positive(4, 3, seed=1), positive(2, 4, seed=2), positive(5, 2, seed=3)]
    g = positive(5, seed=4)
    adjoints = chain_backward(chain, g)
    close(adjoints[0], (chain[2] @ chain[1] @ chain[0]).T @ g)
    assert [len(a) for a in adjoints] == [3, 4, 2, 5]
