"""The cost model against counted operations of real passes and against pairs by enumeration."""

from __future__ import annotations

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from descend.nn.attention.linear import linear_attend
from descend.nn.encoder import EncoderBlock
from descend.ops.attention.dot_product import attention
from descend.ops.attention.patterns import pairs, window, with_global
from descend.theory.attention import flops
from descend.theory.attention_cost import (
    attention_multiplications,
    decoder_layer_flops,
    fitted_exponent,
    full_pairs,
    global_pairs_bound,
    layer_flops,
    longformer_multiplications,
    performer_multiplications,
    score_bytes,
    score_multiplications,
    window_pairs,
    work_ratio,
)
from tests.close import close

SLUG = "attention-cost-model"


def counted(call: object) -> int:
    """FLOPs of a call; the fused kernel is not counted by torch, so its plain form runs."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        call()  # type: ignore[operator]
    return counter.get_total_flops()


@pytest.mark.system(SLUG)
@pytest.mark.parametrize(("n", "d"), [(16, 8), (40, 12)])
def test_attention_counts_are_those_of_a_real_pass(n: int, d: int) -> None:
    x = torch.randn(n, d)
    assert counted(lambda: attention(x, x, x)) == 2 * attention_multiplications(n, d)
    assert attention(x, x, x)[1].nbytes == score_bytes(n, heads=1)
    heads = torch.randn(4, n, d)
    found = counted(lambda: attention(heads, heads, heads))
    assert found == 2 * 2 * score_multiplications(n, 4, d)  # the factor H, which later chapters of MF drop
    assert attention_multiplications(n, d, 5) == n * n * (d + 5)


@pytest.mark.system(SLUG)
def test_layer_counts_are_those_of_a_real_block() -> None:
    block = EncoderBlock(16, 4, 48, torch.nn.ReLU()).double()
    x = torch.randn(1, 10, 16, dtype=torch.float64)
    assert counted(lambda: block(x)) == layer_flops(10, 16, 4, 48)
    assert layer_flops(10, 16, 4, 48) - flops(10, 16, 4, 4) == 4 * 10 * 16 * 48
    cross = counted(lambda: block.attn(x, torch.randn(1, 7, 16, dtype=torch.float64)))
    assert decoder_layer_flops(10, 7, 16, 4, 48) == layer_flops(10, 16, 4, 48) + cross


@pytest.mark.system(SLUG)
def test_backward_costs_twice_as_much() -> None:
    x = torch.randn(30, 8, requires_grad=True)
    forward = counted(lambda: attention(x, x, x))
    assert counted(lambda: attention(x, x, x)[0].sum().backward()) == 3 * forward


@pytest.mark.system(SLUG)
def test_exponents() -> None:
    """2 for full attention, 1 for the window and the linear form; of counted operations, not of a clock."""
    sizes = [256, 512, 1024, 2048]
    full, linear = [], []
    for n in sizes:
        x = torch.randn(1, n, 1, 8)
        full.append(counted(lambda x=x: attention(x[0, :, 0], x[0, :, 0], x[0, :, 0])))
        linear.append(counted(lambda x=x: linear_attend(x, x, x)))
    close(fitted_exponent(sizes, full), 2.0)
    close(fitted_exponent(sizes, linear), 1.0)
    assert fitted_exponent(sizes, [window_pairs(n, 16) for n in sizes]) == pytest.approx(1, abs=0.02)
    assert fitted_exponent(sizes, [full_pairs(n) + 500 * n for n in sizes]) < 1.9  # small n: the linear part hides it
    close([work_ratio(10, 1), work_ratio(10, 2)], [10.0, 100.0])


@pytest.mark.system(SLUG, "longformer")
def test_longformer_cost() -> None:
    mask = with_global(window(64, 4), torch.tensor([0, 32]))
    assert pairs(mask) <= global_pairs_bound(64, 4, 2)
    assert pairs(mask) > global_pairs_bound(64, 4, 2) - 60  # what is counted twice
    sizes = [512, 1024, 4096, 16384]
    costs = [longformer_multiplications(12, n, 256, 8, 768, 3072) for n in sizes]
    close(fitted_exponent(sizes, costs), 1.0)
    assert longformer_multiplications(2, 10, 1, 0, 4, 6) == 2 * (10 * 3 * 4 + 10 * 4 * 6)
    assert window_pairs(5, 9) == full_pairs(5)


@pytest.mark.system("performer")
def test_performer_cost_is_that_of_a_real_pass() -> None:
    """Φ(K)ᵀ V and Φ(Q) times it; the normaliser is one column more."""
    q, k, v = torch.randn(1, 50, 1, 16), torch.randn(1, 50, 1, 16), torch.randn(1, 50, 1, 7)
    assert counted(lambda: linear_attend(q, k, v)) == 2 * performer_multiplications(50, 16, 7 + 1)
