"""The relative position bias: the released buckets, its form, and what a cache needs of it."""

from __future__ import annotations

import math

import pytest
import torch

from descend.nn.attention.multi_head import Attention
from descend.nn.attention.relative_bias import (
    CausalRelativeBias,
    ClippedRelativeBias,
    RelativeBias,
    clipped_bucket,
    distance_bucket,
    offsets,
    one_sided_bucket,
    two_sided_bucket,
)
from descend.ops.attention.dot_product import additive, causal_mask, scores, weigh
from tests.close import close

SLUG = "relative-position-bias"
EVERY = [RelativeBias(3), CausalRelativeBias(3), ClippedRelativeBias(3, 4)]


@pytest.mark.system(SLUG, "buckets")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (8, 20), (64, 500)])
def test_buckets_are_the_released_ones(buckets: int, farthest: int) -> None:
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    offset = torch.arange(-700, 701)
    theirs = t5.T5Attention._relative_position_bucket
    assert torch.equal(two_sided_bucket(offset, buckets, farthest), theirs(offset, True, buckets, farthest))
    assert torch.equal(one_sided_bucket(offset, buckets, farthest), theirs(offset, False, buckets, farthest))


@pytest.mark.system(SLUG, "coarse")
@pytest.mark.system(SLUG)
def test_near_exact_and_far_coarse() -> None:
    n = torch.arange(1000)
    bucket = distance_bucket(n, 32, 128)
    assert bucket[:16].tolist() == list(range(16))
    assert (bucket.diff() >= 0).all()
    assert (bucket[128:] == 31).all()
    assert bucket.max() == 31
    widths = bucket.bincount()[16:31]
    assert (widths[1:] - widths[:-1] >= -1).all()  # each at least as wide, up to rounding
    assert widths[-1] > 4 * widths[0]
    assert clipped_bucket(torch.tensor([-9, -2, 0, 1, 9]), 3).tolist() == [0, 1, 3, 4, 6]


@pytest.mark.system(SLUG, "offset", "cache")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("bias", EVERY, ids=["encoder", "decoder", "clipped"])
def test_depends_on_the_offset_only_and_serves_a_cache(bias: RelativeBias) -> None:
    whole = bias(12, 12)
    assert whole.shape == (1, 3, 12, 12)
    assert torch.equal(whole[..., 1:, 1:], whole[..., :-1, :-1])  # Toeplitz: the same for a text moved as a whole
    assert torch.equal(bias(11, 11), whole[..., :11, :11])  # DLN's erratum: what was there does not change
    assert torch.equal(bias(1, 12), whole[..., 11:, :])  # a new query needs one row
    assert torch.equal(bias(5, 12), whole[..., 7:, :])


@pytest.mark.system(SLUG, "clipped")
@pytest.mark.system(SLUG)
def test_one_number_an_offset_and_head() -> None:
    assert sum(p.numel() for p in ClippedRelativeBias(8, 5).parameters()) == 8 * (2 * 5 + 1)
    assert sum(p.numel() for p in RelativeBias(8).parameters()) == 8 * 32
    with pytest.raises(ValueError, match="2 buckets up to distance 128"):
        RelativeBias(4, 2)


@pytest.mark.system(SLUG, "scale")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("scale", [None, 1.0], ids=["books", "released"])
def test_in_the_scores(scale: float | None) -> None:
    """S = q·k / √d_k + B by the equation; without the division in the released T5. The causal mask comes on top."""
    torch.manual_seed(0)
    attn, bias = Attention(16, 2, bias=False, scale=scale).double(), CausalRelativeBias(2, 8, 20).double()
    x = torch.randn(2, 9, 16, dtype=torch.float64)
    q, k, v = (m(x).unflatten(-1, (2, 8)).transpose(1, 2) for m in (attn.q, attn.k, attn.v))
    s = scores(q, k) * (1.0 if scale is None else math.sqrt(8)) + bias(9, 9)
    y, _ = weigh(s, v, causal_mask(9))
    close(attn(x, mask=bias(9, 9), causal=True), attn.out(y.transpose(1, 2).flatten(-2)))
    assert additive(causal_mask(2))[0, 1] == -math.inf


@pytest.mark.system(SLUG, "clipped")
@pytest.mark.system(SLUG)
def test_gradients() -> None:
    bias = ClippedRelativeBias(2, 2).double()
    weight = torch.randn(2, 4, 4, dtype=torch.float64)
    (bias(4, 4)[0] * weight).sum().backward()
    grad = bias.table.weight.grad
    assert grad is not None
    close(grad[2], weight.diagonal(dim1=1, dim2=2).sum(-1))  # offset 0
    close(grad[4], weight.triu(2).sum((1, 2)))  # all offsets from 2 on
    assert offsets(2, 4).tolist() == [[-2, -1, 0, 1], [-3, -2, -1, 0]]
