"""Feature pyramids against the recurrence written out, the text's sizes, and the counts of predictions."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.nn.detection.fpn import (
    ConvLevels,
    FeaturePyramid,
    LevelHeads,
    NoLevels,
    Resize,
    SharedHead,
    SmoothedPyramid,
    SubsampledLevel,
    up_bilinear,
    up_nearest,
)
from descend.ops.detection.anchors import make_anchors
from tests.close import close

WIDTHS = (3, 5, 7)


def make_maps(sides: tuple[tuple[int, int], ...] = ((8, 12), (4, 6), (2, 3))) -> list[Tensor]:
    g = torch.Generator().manual_seed(0)
    return [torch.randn(2, d, *s, generator=g, dtype=torch.float64) for d, s in zip(WIDTHS, sides, strict=True)]


def point(conv: nn.Module, x: Tensor) -> Tensor:
    """A 1×1 convolution as a product at every pixel."""
    return torch.einsum("oi,bihw->bohw", conv.weight[:, :, 0, 0], x) + conv.bias[:, None, None]


def double(x: Tensor) -> Tensor:
    """Each pixel four times."""
    return x.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)


@pytest.mark.system("feature-pyramid-network")
@pytest.mark.system("feature-pyramid-network", "text-form")
def test_the_recurrence() -> None:
    torch.manual_seed(0)
    pyramid, maps = FeaturePyramid(WIDTHS, 4).double(), make_maps()
    m5 = point(pyramid.lateral[2], maps[2])
    m4 = double(m5) + point(pyramid.lateral[1], maps[1])
    m3 = double(m4) + point(pyramid.lateral[0], maps[0])
    for ours, theirs in zip(pyramid(maps), (m3, m4, m5, m5[:, :, ::2, ::2]), strict=True):
        close(ours, theirs)


@pytest.mark.system("feature-pyramid-network", "text-form")
def test_sizes_of_the_text() -> None:
    """224 pixels: 56, 28, 14, 7 and 4, all of 256 channels; the lateral convolutions have 984,064 parameters."""
    with torch.device("meta"):
        pyramid = FeaturePyramid((256, 512, 1024, 2048), 256)
        maps = [torch.empty(1, d, s, s) for d, s in zip((256, 512, 1024, 2048), (56, 28, 14, 7), strict=True)]
        assert [tuple(m.shape[1:]) for m in pyramid(maps)] == [(256, s, s) for s in (56, 28, 14, 7, 4)]
    assert sum(p.numel() for p in pyramid.parameters()) == 984_064


@pytest.mark.system("feature-pyramid-network", "upsampling")
def test_both_ways_of_upsampling() -> None:
    """Nearest repeats pixels; bilinear at factor 2 mixes ¾ and ¼ of the neighbours. Odd sizes fit, too."""
    coarse, fine = torch.arange(6.0, dtype=torch.float64).view(1, 1, 2, 3), torch.zeros(1, 1, 4, 6, dtype=torch.float64)
    close(up_nearest(coarse, fine), double(coarse))
    row = torch.tensor([0, 0.25, 0.75, 1.25, 1.75, 2], dtype=torch.float64)
    column = torch.tensor([0, 0.75, 2.25, 3], dtype=torch.float64)
    close(up_bilinear(coarse, fine)[0, 0], row + column[:, None])
    for up in (up_nearest, up_bilinear):
        torch.manual_seed(0)
        found = FeaturePyramid(WIDTHS, 4, up).double()(make_maps(((9, 13), (5, 7), (3, 4))))
        assert [tuple(m.shape[2:]) for m in found] == [(9, 13), (5, 7), (3, 4), (2, 2)]
    torch.manual_seed(0)
    one = FeaturePyramid(WIDTHS, 4, up_nearest).double()(make_maps())
    torch.manual_seed(0)
    other = FeaturePyramid(WIDTHS, 4, up_bilinear).double()(make_maps())
    assert torch.equal(one[2], other[2])
    assert not torch.allclose(one[0], other[0])


@pytest.mark.system("feature-pyramid-network", "zero-top")
@pytest.mark.parametrize("up", [up_nearest, up_bilinear])
def test_without_the_top_a_level_is_its_lateral_map(up: Resize) -> None:
    torch.manual_seed(0)
    pyramid, maps = FeaturePyramid(WIDTHS, 4, up).double(), make_maps()
    with torch.no_grad():
        for conv in pyramid.lateral:
            conv.bias.zero_()
    found = pyramid([maps[0], torch.zeros_like(maps[1]), torch.zeros_like(maps[2])])
    close(found[0], point(pyramid.lateral[0], maps[0]))
    assert (found[2] == 0).all()


@pytest.mark.system("feature-pyramid-network", "original")
def test_the_original_smooths_every_level() -> None:
    torch.manual_seed(0)
    maps = make_maps()
    pyramid = SmoothedPyramid(WIDTHS, 4, ConvLevels(4)).double()
    found = pyramid(maps)
    merged = pyramid.pyramid.merge(maps)
    for ours, m, conv in zip(found, merged, pyramid.smooth, strict=False):
        close(ours, F.conv2d(m, conv.weight, conv.bias, padding=1))
    levels = pyramid.coarser
    p6 = F.conv2d(found[2], levels.p6.weight, levels.p6.bias, stride=2, padding=1)
    close(found[3], p6)
    close(found[4], F.conv2d(p6.relu(), levels.p7.weight, levels.p7.bias, stride=2, padding=1))
    assert len(SmoothedPyramid(WIDTHS, 4, NoLevels()).double()(maps)) == 3
    plain = SmoothedPyramid(WIDTHS, 4, SubsampledLevel()).double()
    close(plain(maps)[3], F.max_pool2d(plain(maps)[2], 1, 2))


@pytest.mark.system("feature-pyramid-network", "original")
def test_parameters_of_the_smoothing() -> None:
    with torch.device("meta"):
        pyramid = SmoothedPyramid((256, 512, 1024, 2048), 256, NoLevels())
    assert sum(p.numel() for p in pyramid.smooth.parameters()) == 2_360_320


@pytest.mark.system("feature-pyramid-network", "separate-heads")
def test_a_head_for_each_level() -> None:
    """Σ H W k predictions, each in the place of its anchor, and a level's head sees no other level."""
    torch.manual_seed(0)
    maps = [m[:, :3].clone().requires_grad_() for m in make_maps()]
    k, numbers = 2, 5
    heads = LevelHeads([nn.Conv2d(3, k * numbers, 1).double() for _ in maps], numbers)
    out = heads(maps)
    anchors = torch.cat(
        [make_anchors(m.shape[2], m.shape[3], 8.0 * 2**i, 32, (1.0,), (1.0, 1.4)) for i, m in enumerate(maps)]
    )
    assert out.shape == (2, (96 + 24 + 6) * k, numbers)
    assert len(anchors) == out.shape[1]
    i, j, shape = 3, 2, 1  # cell of the second level
    place = 96 * k + (i * 6 + j) * k + shape
    by_hand = point(heads.heads[1], maps[1]).view(2, k, numbers, 4, 6)[:, shape, :, i, j]
    close(out[:, place], by_hand)
    centre = (anchors[place, :2] + anchors[place, 2:]) / 2
    close(centre, torch.tensor([(j + 0.5) * 16, (i + 0.5) * 16]))
    grads = torch.autograd.grad(out[:, : 96 * k].sum(), maps)
    assert [bool(g.any()) for g in grads] == [True, False, False]


@pytest.mark.system("feature-pyramid-network", "shared-heads")
def test_one_head_for_all_levels() -> None:
    torch.manual_seed(0)
    maps = [m[:, :3] for m in make_maps()]
    conv = nn.Conv2d(3, 10, 3, padding=1).double()
    shared, separate = SharedHead(conv, 5), LevelHeads([conv, conv, conv], 5)
    close(shared(maps), separate(maps))
    assert sum(p.numel() for p in shared.parameters()) == sum(p.numel() for p in conv.parameters())
