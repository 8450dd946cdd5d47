"""The compiled window attention is the one that torch computes, forward and backward."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.native.build import library
from descend.native.windows import attend, attention
from descend.nn.attention.shifted_window import ImageWindowAttention
from tests.close import close

pytestmark = pytest.mark.skipif(library() is None, reason="there is no C++ compiler here")

# b, height, width, heads, head size, window, shift: sizes that are no multiple of 8 or 16, one window, one row of them
SHAPES = [
    (2, 8, 12, 2, 8, 4, 2),
    (1, 6, 9, 3, 16, 3, 0),
    (2, 14, 14, 3, 32, 7, 3),
    (1, 9, 6, 2, 5, 3, 1),
    (1, 5, 5, 1, 24, 5, 0),
]


def maps(b: int, height: int, width: int, heads: int, k: int) -> tuple[Tensor, Tensor]:
    """Q, K and V in one, and a gradient."""
    random = torch.Generator().manual_seed(0)
    shape = (b, height, width, 4, heads, k)
    whole = torch.randn(shape, generator=random, dtype=torch.float64)
    return whole[:, :, :, :3].contiguous(), whole[:, :, :, 3].contiguous()


@pytest.mark.system("window-attention")
@pytest.mark.parametrize(("b", "height", "width", "heads", "k", "window", "shift"), SHAPES)
def test_values_and_gradients(b: int, height: int, width: int, heads: int, k: int, window: int, shift: int) -> None:
    qkv, dy = maps(b, height, width, heads, k)
    torch.manual_seed(0)
    layer = ImageWindowAttention(heads * k, heads, window, shift).double()
    torch.nn.init.normal_(layer.offsets)
    bias = layer.bias(window).detach()
    exact = [p.clone().requires_grad_() for p in (qkv, bias)]
    layer.bias = lambda size: exact[1]  # type: ignore[method-assign]
    expected = layer.mix(exact[0], window, shift)
    single = [p.float().requires_grad_() for p in (qkv, bias)]
    found = attention(single[0], single[1], window, shift)
    close(found, expected.float())
    wanted = torch.autograd.grad(expected, exact, dy)
    for ours, theirs in zip(torch.autograd.grad(found, single, dy.float()), wanted, strict=True):
        close(ours, theirs.float())


@pytest.mark.parametrize(("b", "height", "width", "heads", "k", "window", "shift"), [s for s in SHAPES if s[4] != 5])
def test_bfloat16(b: int, height: int, width: int, heads: int, k: int, window: int, shift: int) -> None:
    """Maps in bfloat16, the bias and its gradient in float32: float32's numbers to a rounding."""
    qkv, dy = (x.bfloat16() for x in maps(b, height, width, heads, k))
    bias = torch.randn(heads, window**2, window**2, generator=torch.Generator().manual_seed(1))
    half, single = ([x.requires_grad_(), bias.clone().requires_grad_()] for x in (qkv, qkv.float()))
    y, expected = attention(half[0], half[1], window, shift), attention(single[0], single[1], window, shift)
    found, wanted = torch.autograd.grad(y, half, dy), torch.autograd.grad(expected, single, dy.float())
    assert [x.dtype for x in (y, *found)] == [torch.bfloat16, torch.bfloat16, torch.float32]
    for ours, theirs in zip((y, *found), (expected, *wanted), strict=True):
        assert (ours.float() - theirs).norm() < 0.01 * theirs.norm()
        assert (ours.float() - 1.03 * theirs).norm() > 0.01 * theirs.norm()


def test_other_strides_and_threads() -> None:
    """Turned inputs and a turned gradient, any number of threads: the same to the last bit."""
    random = torch.Generator().manual_seed(0)
    whole = torch.randn(8, 2, 3, 6, 6, 2, generator=random).permute(5, 3, 4, 2, 1, 0).requires_grad_()
    bias = torch.randn(2, 9, 9, generator=random)
    dy = torch.randn(8, 2, 6, 6, 2, generator=random).permute(4, 2, 3, 1, 0)
    before, results = torch.get_num_threads(), []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        y = attention(whole, bias, 3, 1)
        results.append([y.detach(), *torch.autograd.grad(y, whole, dy)])
    torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))
    assert torch.equal(attention(whole.detach().contiguous(), bias, 3, 1), results[0][0])


def test_the_operator_is_well_formed() -> None:
    qkv = maps(1, 4, 4, 2, 8)[0].float().requires_grad_()
    bias = torch.randn(2, 4, 4, requires_grad=True)
    tests = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(attend, (qkv, bias, 2, 1), test_utils=tests)
