"""The cost model against counted operations of real passes and against pairs by enumeration."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from descend.nn.attention.linear import linear_attend
from descend.nn.attention.multi_head import Attention
from descend.nn.attention.sliding_window import window_attend
from descend.nn.encoder import EncoderBlock
from descend.ops.attention.dot_product import attention
from descend.ops.attention.patterns import pairs, window, with_global
from descend.theory.attention import flops
from descend.theory.attention_cost import (
    attention_multiplications,
    decoder_layer_flops,
    fit_exponent,
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
from tests.nn.dense import dense, kept_for_backward, qkv

SLUG = "attention-cost-model"


def counted(call: object) -> int:
    """FLOPs of a call; the fused kernel is not counted by torch, so its plain form runs."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        call()  # type: ignore[operator]
    return counter.get_total_flops()


@pytest.mark.system("sequence-architecture-comparison", "counts")
@pytest.mark.system(SLUG, "counts", "head-factor")
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


@pytest.mark.system(SLUG, "layers")
@pytest.mark.system(SLUG)
def test_layer_counts_are_those_of_a_real_block() -> None:
    block = EncoderBlock(16, 4, 48, torch.nn.ReLU()).double()
    x = torch.randn(1, 10, 16, dtype=torch.float64)
    assert counted(lambda: block(x)) == layer_flops(10, 16, 4, 48)
    assert layer_flops(10, 16, 4, 48) - flops(10, 16, 4, 4) == 4 * 10 * 16 * 48
    cross = counted(lambda: block.attn(x, torch.randn(1, 7, 16, dtype=torch.float64)))
    assert decoder_layer_flops(10, 7, 16, 4, 48) == layer_flops(10, 16, 4, 48) + cross


@pytest.mark.system(SLUG, "backward")
@pytest.mark.system(SLUG)
def test_backward_costs_twice_as_much() -> None:
    x = torch.randn(30, 8, requires_grad=True)
    forward = counted(lambda: attention(x, x, x))
    assert counted(lambda: attention(x, x, x)[0].sum().backward()) == 3 * forward


@pytest.mark.system("linear-attention", "cost")
@pytest.mark.system(SLUG, "exponents")
@pytest.mark.system(SLUG)
def test_exponents() -> None:
    """2 for full attention, 1 for the window and the linear form; of counted operations, not of a clock."""
    sizes = [256, 512, 1024, 2048]
    full, linear = [], []
    for n in sizes:
        x = torch.randn(1, n, 1, 8)
        full.append(counted(lambda x=x: attention(x[0, :, 0], x[0, :, 0], x[0, :, 0])))
        linear.append(counted(lambda x=x: linear_attend(x, x, x)))
    close(fit_exponent(sizes, full), 2.0)
    close(fit_exponent(sizes, linear), 1.0)
    assert fit_exponent(sizes, [window_pairs(n, 16) for n in sizes]) == pytest.approx(1, abs=0.02)
    assert fit_exponent(sizes, [full_pairs(n) + 500 * n for n in sizes]) < 1.9  # small n: the linear part hides it
    close([work_ratio(10, 1), work_ratio(10, 2)], [10.0, 100.0])


@pytest.mark.system("longformer", "cost")
@pytest.mark.system(SLUG)
@pytest.mark.system("longformer")
def test_longformer_cost() -> None:
    mask = with_global(window(64, 4), torch.tensor([0, 32]))
    assert pairs(mask) <= global_pairs_bound(64, 4, 2)
    assert pairs(mask) > global_pairs_bound(64, 4, 2) - 60  # what is counted twice
    sizes = [512, 1024, 4096, 16384]
    costs = [longformer_multiplications(12, n, 256, 8, 768, 3072) for n in sizes]
    close(fit_exponent(sizes, costs), 1.0)
    assert longformer_multiplications(2, 10, 1, 0, 4, 6) == 2 * (10 * 3 * 4 + 10 * 4 * 6)
    assert window_pairs(5, 9) == full_pairs(5)


@pytest.mark.system("performer", "cost")
@pytest.mark.system("performer")
def test_performer_cost_is_that_of_a_real_pass() -> None:
    """Φ(K)ᵀ V and Φ(Q) times it; the normaliser is one column more."""
    q, k, v = torch.randn(1, 50, 1, 16), torch.randn(1, 50, 1, 16), torch.randn(1, 50, 1, 7)
    assert counted(lambda: linear_attend(q, k, v)) == 2 * performer_multiplications(50, 16, 7 + 1)


def full(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The equation, with its T × T matrix."""
    return dense(q, k, v, None)


def near(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return window_attend(q, k, v, 32)


@pytest.mark.system(SLUG, "memory")
def test_exponents_of_the_memory_that_is_kept() -> None:
    sizes = [512, 1024, 2048]

    def exponent(call: Callable[..., torch.Tensor]) -> float:
        return fit_exponent(sizes, [kept_for_backward(call, qkv(t)) for t in sizes])

    assert exponent(full) == pytest.approx(2, abs=0.05)
    assert exponent(near) == pytest.approx(1, abs=0.05)
    assert exponent(linear_attend) == pytest.approx(1, abs=0.05)


def seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """Of processor time, the least of several: what other programs take does not count."""
    found = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return min(found)


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.system(SLUG, "time")
@pytest.mark.system("linear-attention", "cost")
@pytest.mark.usefixtures("one_thread")
def test_exponents_of_the_time() -> None:
    """Wide bands, because a shared machine is no clock: 2 and 1 are far enough apart."""
    sizes = [512, 1024, 2048]
    inputs = [torch.randn(3, 1, t, 1, 128).unbind() for t in sizes]
    slopes = [
        fit_exponent(sizes, [seconds(lambda x=x, c=call: c(*x)) for x in inputs])
        for call in (full, near, linear_attend)
    ]
    assert 1.6 < slopes[0] < 2.6
    assert 0.5 < min(slopes[1:]) <= max(slopes[1:]) < 1.4


@pytest.mark.system("multi-head-attention", "cost-parity")
@pytest.mark.usefixtures("one_thread")
def test_the_time_of_heads() -> None:
    """Eight heads of 32 take about as long as one of 256, eight of 256 several times as long."""
    x = torch.randn(1, 128, 256)
    layers = [Attention(256, heads, head_size=size) for heads, size in ((1, 256), (8, 32), (8, 256))]
    with torch.no_grad():
        one, split, wide = (seconds(lambda a=attn: a(x), repeats=15) for attn in layers)
    assert split < 2.5 * one
    assert wide > 3 * one
    assert wide > 3 * split
