"""Reshaping in both memory orders against numpy, permutations against einsum, broadcasting against torch and numpy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from descend.ops.math.shapes import (
    broadcast,
    broadcast_shape,
    column_major_strides,
    destinations,
    flatten,
    inverse,
    order,
    permute,
    position,
    reshape,
    reshape_column_major,
    row_major_strides,
    sources,
    sum_to,
)
from tests.close import close

SHAPES = st.lists(st.integers(1, 4), min_size=0, max_size=4).map(tuple)


def counted(shape: tuple[int, ...]) -> Tensor:
    return torch.arange(math.prod(shape)).view(shape)


# Shapes and memory


@pytest.mark.system("tensor-shape-operations")
@pytest.mark.system("tensor-shape-operations", "order")
@given(shape=SHAPES)
@settings(deadline=None, max_examples=25, derandomize=True)
def test_order_and_the_place_of_every_element(shape: tuple[int, ...]) -> None:
    x = counted(shape)
    assert order(x) == x.ndim == len(shape)
    fortran = np.arange(x.numel()).reshape(shape, order="F")
    for index in itertools.product(*map(range, shape)):
        assert position(index, row_major_strides(shape)) == x[index]
        assert position(index, column_major_strides(shape)) == fortran[index]
    assert all(n == 1 or a == b for n, a, b in zip(shape, row_major_strides(shape), x.stride(), strict=True))


@pytest.mark.system("tensor-shape-operations")
@pytest.mark.system("tensor-shape-operations", "memory-orders")
@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4), data=st.data())
@settings(deadline=None, max_examples=25, derandomize=True)
def test_reshape_in_both_orders_equals_numpy(sizes: list[int], data: st.DataObject) -> None:
    target = data.draw(st.permutations(sizes))
    cut = data.draw(st.integers(0, len(target)))
    target = [math.prod(target[:cut]), *target[cut:]]
    x = counted(tuple(sizes))
    assert reshape(x, target).tolist() == x.numpy().reshape(target, order="C").tolist()
    assert reshape_column_major(x, target).tolist() == x.numpy().reshape(target, order="F").tolist()


@pytest.mark.system("tensor-shape-operations")
@pytest.mark.system("tensor-shape-operations", "memory-orders")
def test_reshape_moves_no_data() -> None:
    """MF 12.3.1: (B, C, H, W) -> (BC, HW) is a view."""
    x = counted((2, 3, 2, 2))
    y = reshape(x, (6, 4))
    assert y.data_ptr() == x.data_ptr()
    y[1, 2] = -1
    assert x[0, 1, 1, 0] == -1
    with pytest.raises(ValueError, match="holds 25 numbers, the tensor has 24"):
        reshape(x, (5, 5))
    with pytest.raises(ValueError, match="holds 25"):
        reshape_column_major(x, (5, 5))


@pytest.mark.system("tensor-shape-operations")
@pytest.mark.system("tensor-shape-operations", "flatten")
def test_flatten_can_keep_the_batch() -> None:
    """MF (12.9) flattens the batch too; a dense layer needs (B, C·H·W)."""
    x = counted((2, 3, 4, 5))
    assert flatten(x).shape == (120,)
    assert torch.equal(flatten(x, 1), x.flatten(1))
    assert torch.equal(flatten(x, 1)[1], flatten(x[1]))
    assert torch.equal(flatten(x, 4), x[..., None])


# Permutations


@pytest.mark.system("tensor-shape-operations")
@pytest.mark.system("tensor-shape-operations", "permute")
@given(after=st.permutations("kilj"))
@settings(deadline=None, max_examples=24, derandomize=True)
def test_permute_equals_einsum_and_its_inverse_restores(after: list[str]) -> None:
    x, equation = counted((2, 3, 4, 5)), "kilj->" + "".join(after)
    y = permute(x, equation)
    assert torch.equal(y, torch.einsum(equation, x))
    assert torch.equal(y, x.movedim((0, 1, 2, 3), destinations(equation)))
    assert torch.equal(y.permute(*inverse(sources(equation))), x)
    assert y.data_ptr() == x.data_ptr()


@pytest.mark.system("tensor-shape-operations")
@pytest.mark.system("tensor-shape-operations", "permute")
def test_the_permutation_of_mf() -> None:
    """MF 12.3.2: Y_ijkl = X_kilj; printed (2,0,3,1), torch's permute takes (1,3,0,2)."""
    x, equation = counted((2, 3, 4, 5)), "kilj -> ijkl"
    assert sources(equation) == (1, 3, 0, 2)
    assert destinations(equation) == (2, 0, 3, 1)
    y = permute(x, equation)
    assert y[2, 4, 1, 3] == x[1, 2, 3, 4]  # i, j, k, l = 2, 4, 1, 3
    assert x.permute(2, 0, 3, 1).shape == (4, 2, 5, 3) != y.shape
    for wrong in ("ij", "ij->ik", "ii->ii", "ij->i"):
        with pytest.raises(ValueError, match="permutation"):
            sources(wrong)
    with pytest.raises(ValueError, match="names 2 axes, the tensor has 4"):
        permute(x, "ij->ji")


# Broadcasting


@pytest.mark.system("broadcasting")
@pytest.mark.system("broadcasting", "shape")
@given(shapes=st.lists(st.lists(st.integers(0, 3), max_size=4).map(tuple), min_size=1, max_size=3))
@settings(deadline=None, max_examples=80, derandomize=True)
def test_broadcast_shape_equals_torch_and_numpy(shapes: list[tuple[int, ...]]) -> None:
    try:
        theirs = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ValueError, match="do not broadcast"):
            broadcast_shape(*shapes)
        return
    assert broadcast_shape(*shapes) == theirs == tuple(torch.broadcast_shapes(*shapes))


@pytest.mark.system("broadcasting")
@pytest.mark.system("broadcasting", "shape")
def test_the_error_names_the_axis() -> None:
    assert broadcast_shape((3, 4), (4,)) == (3, 4)
    assert broadcast_shape((2, 3, 4), (4,)) == (2, 3, 4)
    with pytest.raises(ValueError, match=r"\(3, 4\) and \(3,\) do not broadcast: axis -1 has sizes \[3, 4\]"):
        broadcast_shape((3, 4), (3,))
    x = torch.arange(3.0)[:, None]
    assert torch.equal(broadcast(x, (2, 3, 4)), x.expand(2, 3, 4))
    for shape in ((3,), (2, 1), (3, 0, 1)):
        with pytest.raises(ValueError, match=r"stretch|broadcast"):
            broadcast(x, shape)


@pytest.mark.system("broadcasting")
@pytest.mark.system("broadcasting", "gradient")
@given(shape=SHAPES, data=st.data(), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=25, derandomize=True)
def test_the_gradient_of_a_broadcast_operand_is_summed(shape: tuple[int, ...], data: st.DataObject, seed: int) -> None:
    kept = data.draw(st.integers(0, len(shape)))
    small = tuple(data.draw(st.sampled_from([1, n])) for n in shape[kept:])
    random = torch.Generator().manual_seed(seed)
    gamma = torch.randn(small, generator=random, dtype=torch.float64, requires_grad=True)
    x, g = (torch.randn(shape, generator=random, dtype=torch.float64) for _ in range(2))
    (expected,) = torch.autograd.grad(x * gamma, gamma, g)  # Y = X γ
    close(sum_to(g * x, small), expected)


@pytest.mark.system("broadcasting")
@pytest.mark.system("broadcasting", "gradient")
def test_gradcheck_of_a_gain_for_each_feature() -> None:
    """Y_bmn = X_bmn γ_n: ∂L/∂γ_n = Σ_bm ∂L/∂Y_bmn X_bmn."""
    random = torch.Generator().manual_seed(0)
    x, g = (torch.randn(2, 3, 4, generator=random, dtype=torch.float64) for _ in range(2))
    gamma = torch.randn(4, generator=random, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda gamma: x * broadcast(gamma, (2, 3, 4)), gamma)
    close(sum_to(g * x, (4,)), (g * x).sum((0, 1)))
    assert torch.equal(sum_to(g, g.shape), g)
