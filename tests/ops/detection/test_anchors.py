from __future__ import annotations

import pytest
import torch

from descend.ops.boxes import area, to_centre
from descend.ops.detection.anchors import RATIOS, SCALES, anchor_shapes, anchor_shapes_wide, make_anchors, make_grid
from tests.close import close


@pytest.mark.system("anchor-boxes")
def test_anchors_cell_by_cell() -> None:
    height, width, stride, base = 3, 5, 16, 40.0
    expected = []
    for i in range(height):
        for j in range(width):
            for ratio in RATIOS:
                for scale in SCALES:
                    w, h = base * scale / ratio**0.5, base * scale * ratio**0.5
                    expected.append([(j + 0.5) * stride, (i + 0.5) * stride, w, h])
    close(to_centre(make_anchors(height, width, stride, base)), torch.tensor(expected))


@pytest.mark.system("anchor-boxes", "orientations")
def test_shapes() -> None:
    """One area for all ratios of a scale; h / w and w / h."""
    tall, wide = anchor_shapes(32.0, (0.5, 3.0), (1.0, 2.0)), anchor_shapes_wide(32.0, (0.5, 3.0), (1.0, 2.0))
    close(tall.prod(dim=1), torch.tensor([1.0, 4, 1, 4]) * 32**2)
    close(tall[:, 1] / tall[:, 0], torch.tensor([0.5, 0.5, 3, 3]))
    close(wide[:, 0] / wide[:, 1], torch.tensor([0.5, 0.5, 3, 3]))
    same = {tuple(row) for row in anchor_shapes(32.0).tolist()} == {tuple(r) for r in anchor_shapes_wide(32.0).tolist()}
    assert same
    close(area(make_anchors(1, 1, 8, 32.0)), anchor_shapes(32.0).prod(dim=1))


@pytest.mark.system("anchor-boxes", "centres")
def test_the_grid() -> None:
    assert make_grid(2, 3, 8).tolist() == [[4, 4], [12, 4], [20, 4], [4, 12], [12, 12], [20, 12]]
