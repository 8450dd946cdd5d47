"""Attention in tiles: torch's, to rounding, forth and back; and no large tensor on the way."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from descend.ops.attention.dot_product import attention, padding_mask
from descend.ops.attention.flash import add_tile, begin, finish, flash_attention
from tests.close import close

SLUG = "flash-attention"
EXACT = 0.1  # of the tolerance of float64: 1e-10


def draw(*shapes: tuple[int, ...], seed: int = 0) -> list[Tensor]:
    random = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=random, dtype=torch.float64).requires_grad_() for shape in shapes]


def differentiate(y: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    out = torch.randn(y.shape, generator=torch.Generator().manual_seed(9), dtype=y.dtype)
    return torch.autograd.grad(y, inputs, out)


@pytest.mark.system(SLUG, "forward-backward", "ragged")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [(1, 1), (4, 4), (3, 5), (16, 2), (13, 13), (64, 64)])
def test_it_is_full_attention(size: tuple[int, int], causal: bool) -> None:
    inputs = draw((2, 3, 13, 6), (2, 3, 13, 6), (2, 3, 13, 4))
    ours, theirs = (
        flash_attention(*inputs, causal, size=size),
        F.scaled_dot_product_attention(*inputs, is_causal=causal),
    )
    close(ours, theirs, EXACT)
    for a, b in zip(differentiate(ours, inputs), differentiate(theirs, inputs), strict=True):
        close(a, b, EXACT)


@pytest.mark.system(SLUG, "causal-and-masks", "ragged")
@pytest.mark.parametrize("size", [(2, 3), (5, 4), (8, 8)])
@pytest.mark.parametrize("causal", [False, True])
def test_fewer_queries_and_padding(size: tuple[int, int], causal: bool) -> None:
    """The last query meets the last key; the second text has no key at all, and gives 0 forth and back."""
    inputs = draw((3, 2, 5, 4), (3, 2, 11, 4), (3, 2, 11, 4))
    mask = padding_mask(torch.tensor([11, 0, 7]), 11)
    seen = mask & torch.ones(5, 11, dtype=torch.bool).tril(6) if causal else mask
    ours, theirs = flash_attention(*inputs, causal, mask, size), attention(*inputs, seen)[0]
    close(ours, theirs, EXACT)
    assert (ours[1] == 0).all()
    found = differentiate(ours, inputs)
    for a, b in zip(found, differentiate(theirs, inputs), strict=True):
        close(a, b, EXACT)
    assert all((grad[1] == 0).all() for grad in found)


@pytest.mark.system(SLUG, "forward-backward")
def test_by_finite_differences() -> None:
    inputs = draw((4, 3), (5, 3), (5, 2))
    assert torch.autograd.gradcheck(lambda q, k, v: flash_attention(q, k, v, size=(3, 2)), inputs)


def test_large_scores_do_not_overflow() -> None:
    q, k, v = (x.detach() for x in draw((6, 4), (6, 4), (6, 4)))
    close(flash_attention(1e4 * q, k, v, size=(2, 2)), F.scaled_dot_product_attention(1e4 * q, k, v))


@pytest.mark.system(SLUG, "online-softmax")
def test_running_maximum_and_sum() -> None:
    """After any number of blocks O and L are those of the keys so far."""
    (s,), (v,) = draw((5, 12)), draw((12, 3), seed=1)
    found = begin(s, 3)
    for end in (4, 5, 12):
        start = {4: 0, 5: 4, 12: 5}[end]
        found = add_tile(found, s[:, start:end], v[start:end])
        o, log_sum = finish(found)
        close(o, s[:, :end].softmax(-1) @ v[:end], EXACT)
        close(log_sum[:, 0], s[:, :end].logsumexp(-1), EXACT)


class Largest(TorchDispatchMode):
    """Sees every result of every operation, and keeps the number of elements of the largest."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for one in found if isinstance(found, tuple | list) else (found,):
            if isinstance(one, Tensor):
                self.most = max(self.most, one.untyped_storage().nbytes() // one.element_size())
        return found


@pytest.mark.system(SLUG, "linear-memory")
def test_the_largest_tensor_grows_with_the_length() -> None:
    """Of full attention with its square, forth and back, which is what the counter has to see to be worth anything."""

    def largest(form: Any, n: int) -> int:
        inputs = draw((n, 4), (n, 4), (n, 4))
        with Largest() as seen:
            differentiate(form(*inputs), inputs)
        return seen.most

    tiled = [largest(lambda *x: flash_attention(*x, size=(16, 16)), n) for n in (128, 256, 512)]
    full = [largest(lambda *x: attention(*x)[0], n) for n in (128, 256, 512)]
    assert tiled == [4 * n for n in (128, 256, 512)]
    assert full == [n * n for n in (128, 256, 512)]


def test_tiles_of_nothing() -> None:
    q, k, v = draw((3, 2), (3, 2), (3, 2))
    with pytest.raises(ValueError, match="tiles of 0 × 4; both must be at least 1"):
        flash_attention(q, k, v, size=(0, 4))
    assert math.isfinite(float(flash_attention(q, k, v).sum()))
