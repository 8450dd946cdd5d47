"""Compiled sums, maxima and attention over edges are those of torch, for both types of numbers, and so their slopes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from torch import Tensor

from descend.native import graph as native
from descend.native.build import library
from descend.ops.graph import aggregate, structure
from descend.ops.graph.structure import Incidence, Links
from tests.close import close

pytestmark = pytest.mark.skipif(library() is None, reason="there is no compiler")
TYPES = [torch.float32, torch.float64]


def links(n: int = 40, e: int = 170) -> Links:
    """Loops, parallel edges, and nodes that nothing leads to."""
    random = torch.Generator().manual_seed(0)
    ends = torch.randint(0, n - 3, (2, e), generator=random)
    return Links(ends[0], ends[1], torch.zeros(n, dtype=torch.long), 1)


def numbers(*shape: int, dtype: torch.dtype) -> Tensor:
    random = torch.Generator().manual_seed(shape[0])
    return torch.randn(*shape, generator=random, dtype=torch.float64).to(dtype).requires_grad_()


def slopes(y: Tensor, *x: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad((y * torch.linspace(-1, 2, y.numel(), dtype=y.dtype).view_as(y)).sum(), x)


def switch_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "usable", lambda *x: False)
    monkeypatch.setattr(native, "group", lambda by, n: None)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("width", [1, 7, 16, 85])
def test_sums(dtype: torch.dtype, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for _ in range(2):
        graph, x, w = links(), numbers(40, width, dtype=dtype), numbers(170, dtype=dtype)
        y, plain = aggregate.sum_neighbours(x, graph, w), aggregate.sum_neighbours(x, graph)
        dots, taken = aggregate.dot_pairs(x, x, graph), aggregate.take_sources(x, graph)
        found.append((y, plain, *slopes(y, x, w), *slopes(plain, x), dots, *slopes(dots, x), taken, *slopes(taken, x)))
        switch_off(monkeypatch)
    for ours, theirs in zip(*found, strict=True):
        assert ours.dtype == dtype
        close(ours, theirs, loosen=2)  # sums of up to ten values, in another order
    assert found[0][0][-3:].eq(0).all()  # nothing leads to the last three


@pytest.mark.parametrize("dtype", TYPES)
def test_maxima(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for _ in range(2):
        graph, x = links(), numbers(40, 7, dtype=dtype)
        whole = x.detach().round().requires_grad_()  # many are equal, and share the gradient
        y, even = aggregate.max_neighbours(x, graph), aggregate.max_neighbours(whole, graph)
        found.append((y, even, *slopes(y, x), *slopes(even, whole)))
        switch_off(monkeypatch)
    for ours, theirs in zip(*found, strict=True):
        close(ours, theirs)


def test_nan_is_the_largest() -> None:
    x = torch.tensor([[1.0], [float("nan")], [2.0], [0.0]])
    for order in ([0, 1, 2], [1, 0, 2], [0, 2, 1]):
        graph = Links(torch.tensor(order), torch.tensor([3, 3, 3]), torch.zeros(4, dtype=torch.long), 1)
        assert aggregate.max_neighbours(x, graph)[3].isnan().all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("drops", [False, True])
def test_attention(dtype: torch.dtype, drops: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for _ in range(2):
        graph, z, h = links(), numbers(170, 3, dtype=dtype), numbers(40, 3, 5, dtype=dtype)
        keep = (torch.arange(510).view(170, 3) % 4).to(dtype) if drops else None
        y, share = aggregate.attend(30 * z, h, graph, keep)
        found.append((y, share, *slopes(y, z, h)))
        switch_off(monkeypatch)
    for ours, theirs in zip(*found, strict=True):
        close(ours, theirs, loosen=4)  # a softmax of scores up to 100


def test_gradients_by_differences() -> None:
    graph = links(12, 30)
    x, w = numbers(12, 3, dtype=torch.float64), numbers(30, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x, w: aggregate.sum_neighbours(x, graph, w), (x, w))
    assert torch.autograd.gradgradcheck(lambda x, w: aggregate.sum_neighbours(x, graph, w), (x, w))
    assert torch.autograd.gradcheck(lambda x: aggregate.max_neighbours(x, graph), (x,))
    z, h = numbers(30, 2, dtype=torch.float64), numbers(12, 2, 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda z, h: aggregate.attend(z, h, graph)[0], (z, h))


@pytest.mark.parametrize("by", [[], [0, 0, 1, 3], [3, 1, 0, 1, 3, 0]])
def test_groups(by: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    ours = structure.group(torch.tensor(by, dtype=torch.long), 5)
    switch_off(monkeypatch)
    theirs = structure.group(torch.tensor(by, dtype=torch.long), 5)
    assert torch.equal(ours.order, theirs.order)
    assert torch.equal(ours.starts, theirs.starts)


def test_a_node_that_is_not_there() -> None:
    for number in (7, -1):
        with pytest.raises(IndexError, match=f"node {number} of 5"):
            structure.group(torch.tensor([0, number]), 5)


def test_more_threads_give_the_same_bits() -> None:
    random = torch.Generator().manual_seed(0)
    ends = torch.randint(0, 2000, (2, 20_000), generator=random)
    pairs = Incidence(ends[0], ends[1], 2000, 2000)
    x = torch.randn(2000, 40, generator=random)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(aggregate.sum_pairs(x, pairs))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*found)


def test_nothing_is_said() -> None:
    """Neither with compiled code nor without it: torch warns about its own sparse matrices."""
    code = "import torch; from descend.models.gcn import *; GCNForNodes(TINY)(TINY_INPUT()).sum().backward()"
    for setting in ("0", "1"):
        environment = {**os.environ, "DESCEND_NATIVE": setting}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stderr == ""
