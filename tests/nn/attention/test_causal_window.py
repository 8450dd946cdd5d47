"""Blocks of a window are dense attention with the band mask, and cost the window."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from descend.nn.attention.causal_window import WindowAttention, attend_window
from descend.ops.attention.causal_window import window_mask
from descend.ops.attention.dot_product import attention
from tests.close import close


def heads(t: int, kv_heads: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    g = torch.Generator().manual_seed(0)
    return [torch.randn(2, t, h, 8, generator=g, dtype=dtype) for h in (4, kv_heads, kv_heads)]


@pytest.mark.system("causal-sliding-window", "masked-dense")
@pytest.mark.system("causal-sliding-window")
@pytest.mark.parametrize("t", [1, 4, 5, 8, 17])
@pytest.mark.parametrize("kv_heads", [1, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equals_the_band_mask(t: int, kv_heads: int, dtype: torch.dtype) -> None:
    q, k, v = heads(t, kv_heads, dtype)
    full = [x.repeat_interleave(4 // kv_heads, 2).transpose(1, 2) for x in (k, v)]
    expected = attention(q.transpose(1, 2), full[0], full[1], window_mask(t, 4))[0].transpose(1, 2)
    close(attend_window(q, k, v, 4), expected)


@pytest.mark.system("causal-sliding-window")
def test_gradients() -> None:
    q, k, v = (x[:1, :5, :1, :2].clone().requires_grad_() for x in heads(5, 1))
    assert torch.autograd.gradcheck(lambda q, k, v: attend_window(q, k, v, 2), (q, k, v))


@pytest.mark.system("causal-sliding-window", "cost")
@pytest.mark.system("causal-sliding-window")
def test_the_cost_is_linear_in_the_text() -> None:
    """Twice the text, twice the arithmetic; dense attention would need four times as much."""

    def flops(t: int) -> int:
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):  # the form that is counted
            q, k, v = heads(t, 4)
            attend_window(q, k, v, 16)
        return counter.get_total_flops()

    assert flops(1024) / flops(512) == pytest.approx(2, rel=0.05)


def test_a_window_of_nothing_is_named() -> None:
    with pytest.raises(ValueError, match="sliding_window 0"):
        WindowAttention(8, 2, 2, None, 0)
