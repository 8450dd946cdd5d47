"""EfficientDet: its published sizes, its anchors, and what a small one learns."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from descend.losses.detection.focal import FocalBoxLoss
from descend.models.efficientdet import NECKS, PIXELS, SIZES, TINY, EfficientDet, round_width, scale_up
from tests.close import close
from tests.models.test_retinanet import check_learned


@pytest.mark.system("efficientdet", "size")
def test_d0_and_its_parts() -> None:
    """3,877,763 parameters: EfficientNet-B0 without its head (3,595,388), and 282,375 of neck and towers."""
    with torch.device("meta"):
        model = EfficientDet(SIZES["efficientdet-d0"])
    count = lambda *parts: sum(p.numel() for part in parts for p in part.parameters())
    assert count(model) == 3_877_763
    assert (
        count(model.stem, model.stages) == 5_288_548 - 1_281_000 - 412_160
    )  # B0, its classifier, its last convolution
    assert count(model.neck, model.classes, model.offsets) == 282_375
    with torch.device("meta"):
        found = model(torch.empty(1, 3, 512, 512))
    assert found.logits.shape == (1, 9 * (64**2 + 32**2 + 16**2 + 8**2 + 4**2), 90)


@pytest.mark.system("efficientdet", "scaling")
@pytest.mark.parametrize(("phi", "millions"), list(enumerate([3.9, 6.6, 8.1, 12.0, 20.7, 33.6, 51.8])))
def test_the_table_of_compound_scaling(phi: int, millions: float) -> None:
    """Published: 3.9, 6.6, 8.1, 12, 21, 34 and 52 million. Pixels, cells and depth follow their formulas where the
    paper does not round: 512 + 128 φ up to φ = 4, 3 + φ, 3 + ⌊φ/3⌋; widths are near 64 · 1.35^φ."""
    with torch.device("meta"):
        model = EfficientDet(scale_up(phi))
    assert round(sum(p.numel() for p in model.parameters()) / 1e6, 1) == millions
    width, cells, depth = NECKS[phi]
    assert abs(width / (64 * 1.35**phi) - 1) < 0.07
    if phi <= 4:
        assert PIXELS[phi] == 512 + 128 * phi
        assert cells == 3 + phi
    assert depth == 3 + phi // 3
    assert len(model.neck.cells) == cells


def test_widths_are_rounded() -> None:
    assert [round_width(w) for w in (32 * 1.1, 16 * 1.1, 40 * 1.4, 9.0, 12.1)] == [32, 16, 56, 16, 16]


@pytest.mark.system("efficientdet")
def test_anchors_of_a_cell() -> None:
    """4 strides a side, times 1, 2^⅓ and 2^⅔, in three ratios, around the middle of the cell."""
    model = EfficientDet(replace(TINY, size=4.0)).eval()
    found = model(torch.zeros(1, 3, 64, 64))
    first = found.anchors[:9]
    close((first[:, :2] + first[:, 2:]) / 2, torch.full((9, 2), 4.0))
    w, h = (first[:, 2:] - first[:, :2]).unbind(1)
    close((w * h).sqrt(), torch.tensor([32.0, 32 * 2 ** (1 / 3), 32 * 2 ** (2 / 3)] * 3))
    close(h / w, torch.tensor([1.0, 2.0, 0.5]).repeat_interleave(3))


@pytest.mark.system("efficientdet", "training")
def test_it_learns_a_few_scenes() -> None:
    config = replace(TINY, stem=16, widths=(16, 24, 32), depths=(1, 1, 1), expand=4, pyramid=32, cells=1)
    check_learned(lambda: EfficientDet(config), FocalBoxLoss(), 0.2, more=8, steps=120)


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="one of each"):
        replace(TINY, widths=(4,))
    with pytest.raises(ValueError, match="no stage has stride 8"):
        replace(TINY, strides=(1, 1, 1))
