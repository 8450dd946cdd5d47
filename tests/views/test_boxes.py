from __future__ import annotations

import numpy as np
import pytest
import torch

from descend.views.boxes import contrast, draw_objects, enlarge, spread_colours


@pytest.mark.system("bounding-boxes", "drawn")
def test_frames_have_the_colours_of_their_classes() -> None:
    """Along the outermost pixels of the box, nowhere else; a box without area is not drawn."""
    pixels = np.full((60, 80, 3), 30, dtype=np.uint8)
    colours = spread_colours(2)
    boxes = torch.tensor([[10.0, 20, 30, 40], [40, 5, 75, 50], [5, 5, 5, 9]])
    drawn = draw_objects(pixels, boxes, ["", "", "gone"], [colours[0], colours[1], (9, 9, 9)])
    for (x0, y0, x1, y1), colour in zip(boxes[:2].int().tolist(), colours, strict=True):
        edge = [drawn[y0, x0:x1], drawn[y1 - 1, x0:x1], drawn[y0:y1, x0], drawn[y0:y1, x1 - 1]]
        assert all((line == colour).all() for line in edge)
        assert (drawn[y0 + 1 : y1 - 1, x0 + 1 : x1 - 1] == 30).all()
    assert (drawn != 30).any(axis=2).sum() == 2 * (20 + 18) + 2 * (35 + 43)
    assert colours[0] != colours[1]


def test_tags_can_be_read() -> None:
    """A tag is a field of the class's colour with a text that contrasts; it stays in the image for a box at its top."""
    pixels = np.zeros((120, 160, 3), dtype=np.uint8)
    drawn = draw_objects(pixels, [[20, 0, 150, 110]], ["cell"], [(250, 240, 10)])
    assert (drawn[1:12, 22:40] == (250, 240, 10)).all(axis=2).mean() > 0.3
    assert contrast((250, 240, 10)) == (0, 0, 0)
    assert contrast((20, 20, 120)) == (255, 255, 255)


def test_small_images_are_enlarged() -> None:
    larger, times = enlarge(np.arange(12, dtype=np.uint8).reshape(2, 2, 3), 5)
    assert times == 3
    assert larger.shape == (6, 6, 3)
    assert (larger[:3, :3] == [0, 1, 2]).all()
