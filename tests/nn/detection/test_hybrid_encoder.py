"""RT-DETR's encoder: attention of one level is torch's, tokens of all levels in order, the original's equations."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.nn.detection.hybrid_encoder import (
    CrossScaleFusion,
    IntraScaleAttention,
    TopDownFusion,
    grid_places,
    join_maps,
)
from tests.close import close


@pytest.mark.system("rt-detr-hybrid-encoder")
@pytest.mark.system("rt-detr-hybrid-encoder", "aifi")
def test_the_texts_aifi_is_multi_head_attention() -> None:
    torch.manual_seed(0)
    ours, theirs = IntraScaleAttention(16, 4), nn.MultiheadAttention(16, 4, batch_first=True)
    state = ours.attn.state_dict()
    theirs.load_state_dict(
        {
            "in_proj_weight": torch.cat([state[f"{n}.weight"] for n in "qkv"]),
            "in_proj_bias": torch.cat([state[f"{n}.bias"] for n in "qkv"]),
            "out_proj.weight": state["out.weight"],
            "out_proj.bias": state["out.bias"],
        }
    )
    x = torch.randn(2, 16, 3, 5)
    tokens = x.flatten(2).mT
    close(ours(x).flatten(2).mT, theirs(tokens, tokens, tokens)[0])


@pytest.mark.system("rt-detr-hybrid-encoder", "aifi")
@pytest.mark.parametrize("side", [640, 320, 32])
def test_pairs_of_attention(side: int) -> None:
    """21² = 441 times fewer, for every size."""
    tokens = [(side // s) ** 2 for s in (8, 16, 32)]
    assert sum(tokens) ** 2 == 441 * tokens[-1] ** 2


@pytest.mark.system("rt-detr-hybrid-encoder", "text-form")
def test_the_texts_fusion() -> None:
    """H5 = F5', H4 = f([S4, up(H5)]), H3 = f([S3, up(H4)]); end to end from fine to coarse; 8400 tokens at 640."""
    torch.manual_seed(0)
    fusion = TopDownFusion(8, 3, 8).eval()
    maps = [torch.randn(1, 8, n, n) for n in (8, 4, 2)]
    h3, h4, h5 = fusion(maps)
    assert torch.equal(h5, maps[2])
    up = nn.Upsample(scale_factor=2)
    close(h4, fusion.top_down[0](torch.cat([maps[1], up(h5)], 1)))
    close(h3, fusion.top_down[1](torch.cat([maps[0], up(h4)], 1)))
    tokens, grids = join_maps([h3, h4, h5])
    assert grids == [(8, 8), (4, 4), (2, 2)]
    close(tokens[0, 64 + 5], h4[0, :, 1, 1])
    with torch.device("meta"):
        long, _ = join_maps(TopDownFusion(8, 3, 8)([torch.empty(1, 8, 640 // s, 640 // s) for s in (8, 16, 32)]))
    assert long.shape == (1, 8400, 8)


@pytest.mark.system("rt-detr-hybrid-encoder", "original-form")
def test_the_originals_fusion_by_its_equations() -> None:
    torch.manual_seed(1)
    fusion = CrossScaleFusion(8, 3, 4).eval()
    s3, s4, f5 = (torch.randn(2, 8, n, n + 2 * n // 2) for n in (8, 4, 2))
    up = nn.Upsample(scale_factor=2)
    h5 = fusion.lateral[0](f5)
    h4 = fusion.lateral[1](fusion.top_down[0](torch.cat([up(h5), s4], 1)))
    p3 = fusion.top_down[1](torch.cat([up(h4), s3], 1))
    p4 = fusion.bottom_up[0](torch.cat([fusion.down[0](p3), h4], 1))
    p5 = fusion.bottom_up[1](torch.cat([fusion.down[1](p4), h5], 1))
    for ours, expected in zip(fusion([s3, s4, f5]), (p3, p4, p5), strict=True):
        close(ours, expected)


def test_places_of_a_grid() -> None:
    places = grid_places(3, 4, 8, torch.device("cpu")).view(3, 4, 8)
    close(places[2, 3, 0], torch.tensor(2.0).sin())
    close(places[2, 3, 5], torch.tensor(0.03).sin())
    close(places[2, 3, 6:], torch.tensor([3.0, 0.03]).cos())
    with pytest.raises(ValueError, match="multiple of 4"):
        grid_places(2, 2, 6, torch.device("cpu"))
