"""The contact sheet: the images that training sees first, their boxes drawn where the objects are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from descend import recipes
from descend.data.detection.augment import ObjectAugment
from descend.data.detection.source import DetectionSource
from descend.errors import Mistake
from descend.report.overlay import make_palette
from descend.report.training_sheet import draw_example, draw_training, write_sheet


def test_a_frame_goes_where_the_box_is() -> None:
    image = draw_example(
        torch.zeros(3, 40, 40), torch.tensor([[10.0, 20, 30, 35]]), torch.tensor([0]), ("",), [(255, 0, 0)]
    )
    red = (image[..., 0] > 200).nonzero()
    times = image.shape[0] // 40
    assert (red[1].min(), red[0].min()) == (10 * times, 20 * times)
    assert (red[1].max() + 1, red[0].max() + 1) == (30 * times, 35 * times)


def test_the_sheet_shows_augmented_images(tmp_path: Path) -> None:
    data = DetectionSource(scenes=40, size=64, augment=ObjectAugment(mosaic=1.0, flip=0.5, scale=0.2))
    recipe = replace(recipes.get("yolo-scenes"), data=data)
    images = draw_training(recipe, 6)
    assert len(images) == 6
    assert all(image.shape == (256, 256, 3) for image in images)
    write_sheet(recipe, tmp_path / "a.png", "--sheet")
    sheet = np.asarray(Image.open(tmp_path / "a.png"))
    assert sheet.shape == (4 * 260, 4 * 260, 3)


def test_images_bear_their_class_and_masks_cover_what_they_mark() -> None:
    named = draw_training(replace(recipes.get("lenet-digits")), 3)
    assert [image.shape for image in named] == [(256, 256, 3)] * 3
    assert all((image == (36, 89, 184)).all(2)[:8, :8].any() for image in named)  # the tag with the class
    scenes = recipes.get("unet-scenes")
    laid = draw_training(replace(scenes, data=replace(scenes.data, scenes=24, size=64)), 2)
    assert [image.shape for image in laid] == [(256, 256, 3)] * 2
    tones = (255 * make_palette(9)[1:]).round()
    edges = np.abs(laid[0][..., None, :] - tones).max(-1).min(-1) <= 1  # the edge of a region has its class's colour
    assert 20 < edges.sum() < edges.size / 4


def test_other_recipes_have_none(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="detect, classify or segment"):
        write_sheet(recipes.get("mlp-wine"), tmp_path / "a.png", "--sheet")
