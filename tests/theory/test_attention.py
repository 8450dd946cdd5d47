"""The closed forms of attention against torch's own module, counted operations and sampled scores."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from scipy.stats import norm
from torch.utils.flop_counter import FlopCounterMode

from descend.nn.attention.multi_head import split_heads
from descend.ops.attention.dot_product import attention, scores
from descend.theory.attention import (
    flops,
    head_columns,
    head_size,
    pair_softmax_slope,
    parameters,
    score_beyond,
    score_std,
)
from descend.theory.residual import residual_layers, residual_scale
from tests.close import close


@pytest.mark.system("multi-head-attention", "without-biases")
@pytest.mark.system("multi-head-attention")
@pytest.mark.parametrize(("width", "heads"), [(512, 8), (64, 1), (96, 12)])
def test_parameters_are_those_of_torchs_module(width: int, heads: int) -> None:
    theirs = torch.nn.MultiheadAttention(width, heads, bias=False)
    assert parameters(width, heads, head_size(width, heads)) == sum(p.numel() for p in theirs.parameters())


@pytest.mark.system("multi-head-attention", "cost-parity")
@pytest.mark.system("multi-head-attention")
@pytest.mark.parametrize(("heads", "k"), [(1, 32), (4, 8), (4, 32)])
def test_flops_are_those_that_torch_counts(heads: int, k: int) -> None:
    n, d = 10, 32
    x, w_in, w_out = torch.randn(1, n, d), torch.randn(3, d, heads * k), torch.randn(heads * k, d)
    with FlopCounterMode(display=False) as counter:
        q, key, v = (split_heads(x @ w, heads) for w in w_in)
        attention(q, key, v)[0].transpose(1, 2).flatten(-2) @ w_out
    assert flops(n, d, heads, k) == counter.get_total_flops()


def test_a_width_that_heads_do_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="width 10 is not a multiple of heads 3"):
        head_size(10, 3)


@pytest.mark.system("multi-head-attention")
def test_heads_fill_their_columns() -> None:
    x = torch.arange(12.0)[None, None]
    for head in range(3):
        assert split_heads(x, 3)[0, head, 0].tolist() == [float(c) for c in head_columns(head, 4)]


def real(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


@pytest.mark.system("attention-scaling-analysis", "variance")
@pytest.mark.system("attention-scaling-analysis")
@pytest.mark.parametrize("d_k", [1, 4, 7])
def test_the_variance_of_all_pairs_of_signs_is_d_k(d_k: int) -> None:
    signs = torch.tensor(list(product((-1.0, 1.0), repeat=d_k)), dtype=torch.float64)
    dots = signs @ signs.T
    close(dots.std(correction=0), real(score_std(d_k)))
    close(scores(signs, signs).var(correction=0), real(1.0))


@pytest.mark.system("attention-scaling-analysis", "ranges")
@pytest.mark.system("attention-scaling-analysis")
@pytest.mark.parametrize(("d_k", "limit"), [(512, 30.0), (64, 30.0), (4, 1.0)])
def test_the_tails_are_the_normal_distributions(d_k: int, limit: float) -> None:
    close(real(score_beyond(d_k, limit)), real(2 * norm.sf(limit, scale=d_k**0.5)))


@pytest.mark.system("attention-scaling-analysis", "saturation")
@pytest.mark.system("attention-scaling-analysis")
@pytest.mark.parametrize("gap", [0.0, 1.0, 8.0, 22.6])
def test_the_slope_is_the_softmaxs_own(gap: float) -> None:
    z = torch.tensor([gap, 0.0], dtype=torch.float64, requires_grad=True)
    p = z.softmax(-1)
    # Of the smaller weight: 1 - p of the larger one would lose its digits.
    slope = -torch.autograd.grad(p[1], z)[0][0]
    close(real(pair_softmax_slope(gap)), slope)


@pytest.mark.system("residual-depth-init")
def test_scaled_terms_add_up_to_the_scale_of_one() -> None:
    n = residual_layers(12)
    assert n == 24
    signs = torch.tensor(list(product((-1.0, 1.0), repeat=12)), dtype=torch.float64)  # 12 independent terms, exactly
    close((residual_scale(12) * signs).sum(1).var(correction=0), real(1.0))
    close(real(residual_scale(n)), real(0.2041241452))  # DLN's GPT-2 small
