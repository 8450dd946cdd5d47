"""Framing: the published processors' sizes, and boxes that find the way back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from descend.data.detection.framing import Framing, Letterbox, ShortestEdge, Stretch, find_back, to_input, to_original
from descend.data.detection.prepare import DetectionPreprocessing
from tests.close import close

SIZES = torch.tensor([[480, 640], [640, 480], [33, 900], [1, 1], [97, 96], [427, 640], [800, 1333]])


@pytest.mark.parametrize("framing", [Letterbox(320), Letterbox(320, 0.5), Stretch(320, 256), ShortestEdge()])
def test_boxes_find_the_way_back(framing: Framing) -> None:
    u = torch.rand(len(SIZES), 5, 2, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    low, high = u.sort(dim=2).values.unbind(2)
    boxes = torch.cat([low, high], -1) * SIZES.flip(1).repeat(1, 2)[:, None]
    placed = framing.place(SIZES)
    back = find_back(placed, SIZES)
    inside = to_input(boxes.float(), back[:, None])
    limit = torch.tensor(placed.ground[::-1]).repeat(2)
    assert (inside >= 0).all()
    assert (inside <= limit + 1e-3).all()
    close(to_original(inside, back, SIZES), boxes.float())


def test_what_lies_outside_is_clipped() -> None:
    placed = Letterbox(64).place(torch.tensor([[32, 64]]))
    back = find_back(placed, torch.tensor([[32, 64]]))
    found = to_original(torch.tensor([[[-5.0, 10.0, 80.0, 60.0]]]), back, torch.tensor([[32, 64]]))
    assert found.tolist() == [[[0.0, 10.0, 64.0, 32.0]]]


def test_sizes_are_the_published_processors() -> None:
    """transformers' own functions, for the two framings that keep proportions."""
    from transformers.image_transforms import get_size_with_aspect_ratio
    from transformers.image_utils import get_image_size_for_max_height_width

    for h, w in SIZES.tolist():
        size = torch.tensor([[h, w]])
        assert tuple(Letterbox(320).place(size).sizes[0].tolist()) == tuple(
            max(1, s) for s in get_image_size_for_max_height_width((h, w), 320, 320)
        )
        assert tuple(ShortestEdge().place(size).sizes[0].tolist()) == get_size_with_aspect_ratio((h, w), 800, 1333)


def test_the_ground_around_an_image_is_zero() -> None:
    prepare = DetectionPreprocessing(Letterbox(8, 0.5), (0.5, 0.4, 0.3), (0.2, 0.2, 0.2))
    found = prepare([np.full((4, 8, 3), 255, np.uint8)])
    assert (found.x[0, :, :2] == 0).all()
    assert (found.x[0, :, 6:] == 0).all()
    close(found.x[0, :, 2:6].mean((1, 2)), torch.tensor([2.5, 3.0, 3.5]))
    assert found.back.tolist() == [[1, 1, 0, 2]]
    assert found.size.tolist() == [[4, 8]]
