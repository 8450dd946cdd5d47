from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.ops.boxes import (
    area,
    box_iou,
    clip_boxes,
    from_corner_size,
    intersection,
    pairwise_iou,
    to_centre,
    to_corner_size,
    to_corners,
    to_pixels,
    to_shares,
)
from tests.close import close


def whole_boxes(*shape: int, seed: int = 0, side: int = 12) -> Tensor:
    """Corners at whole pixels, with an area."""
    random = torch.Generator().manual_seed(seed)
    low = torch.randint(0, side, (*shape, 2), generator=random)
    return torch.cat([low, low + torch.randint(1, side, (*shape, 2), generator=random)], dim=-1).float()


def filled(box: Tensor, side: int = 24) -> Tensor:
    """The pixels of boxes (n, 4): (n, side, side)."""
    x0, y0, x1, y1 = (t[:, None, None] for t in box.unbind(-1))
    grid = torch.arange(side)
    return (grid >= x0) & (grid < x1) & (grid[:, None] >= y0) & (grid[:, None] < y1)


@pytest.mark.system("iou")
@pytest.mark.system("iou", "pixels")
def test_iou_is_counting_pixels() -> None:
    a, b = whole_boxes(40), whole_boxes(40, seed=1)
    both, either = (filled(a) & filled(b)).sum(dim=(1, 2)), (filled(a) | filled(b)).sum(dim=(1, 2))
    close(box_iou(a, b), both / either)
    close(intersection(a, b), both.float())
    close(area(a), filled(a).sum(dim=(1, 2)).float())


@pytest.mark.system("iou", "properties")
def test_properties_of_iou() -> None:
    a, b = whole_boxes(60), whole_boxes(60, seed=1)
    value = box_iou(a, b)
    close(box_iou(b, a), value)
    assert 0 <= value.min() < value.max() <= 1
    assert torch.equal(box_iou(a, a), torch.ones(60))
    assert not box_iou(a, a + 100).any()
    half = torch.tensor([[0.0, 0, 10, 10], [5.0, 0, 15, 10]])
    close(box_iou(half[0], half[1]), torch.tensor(1 / 3))


@pytest.mark.system("iou", "pairwise")
def test_the_matrix_of_two_sets() -> None:
    a, b = whole_boxes(3, 7), whole_boxes(3, 5, seed=1)
    table = pairwise_iou(a, b)
    assert table.shape == (3, 7, 5)
    expected = torch.stack([box_iou(a[k, i], b[k, j]) for k in range(3) for i in range(7) for j in range(5)])
    close(table.flatten(), expected)
    assert pairwise_iou(a[0, :0], b[0]).shape == (0, 5)
    assert float(box_iou(torch.tensor([3.0, 3, 1, 1]), torch.tensor([0.0, 0, 4, 4]))) == 0
    assert float(box_iou(torch.zeros(4), torch.zeros(4))) == 0
    assert float(box_iou(torch.tensor([2.0, 0, 2, 4]), torch.tensor([0.0, 0, 4, 4]))) == 0


@pytest.mark.system("bounding-boxes")
@pytest.mark.system("bounding-boxes", "formats")
@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4)])
def test_formats_number_by_number(shape: tuple[int, ...]) -> None:
    corners = whole_boxes(*shape)
    for (x0, y0, x1, y1), centre, sized in zip(
        corners.reshape(-1, 4).tolist(),
        to_centre(corners).reshape(-1, 4).tolist(),
        to_corner_size(corners).reshape(-1, 4).tolist(),
        strict=True,
    ):
        assert centre == [(x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0]
        assert sized == [x0, y0, x1 - x0, y1 - y0]
    assert to_centre(corners).shape == corners.shape
    close(to_corners(torch.tensor([0.4, 0.4, 0.3, 0.3])), torch.tensor([0.25, 0.25, 0.55, 0.55]))


@pytest.mark.system("bounding-boxes", "round-trip")
def test_there_and_back() -> None:
    """To the last bit for whole and half pixels, in float32 up to thousands of them; else to a rounding."""
    half = whole_boxes(200, side=4000) / 2
    assert torch.equal(to_corners(to_centre(half)), half)
    assert torch.equal(from_corner_size(to_corner_size(half)), half)
    centre = to_centre(half)
    assert torch.equal(to_centre(to_corners(centre)), centre)
    real = torch.rand(100, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).sort(dim=1).values
    close(to_corners(to_centre(real)), real)
    power = whole_boxes(50, side=600)
    assert torch.equal(to_pixels(to_shares(power, 1024, 512), 1024, 512), power)


@pytest.mark.system("bounding-boxes", "shares")
def test_shares_of_the_image() -> None:
    """0, 0 is the upper left and 1, 1 the lower right corner, in either format."""
    image = torch.tensor([0.0, 0, 640, 480])
    assert to_shares(image, 640, 480).tolist() == [0, 0, 1, 1]
    assert to_centre(to_shares(image, 640, 480)).tolist() == to_shares(to_centre(image), 640, 480).tolist()
    close(to_pixels(torch.tensor([0.25, 0.25, 0.55, 0.55]), 640, 480), torch.tensor([160.0, 120, 352, 264]))


@pytest.mark.system("bounding-boxes", "clipped")
def test_clipping() -> None:
    box = torch.tensor([[-5.0, 2, 30, 50], [1, 1, 3, 3], [50, 60, 70, 80]])
    clipped = clip_boxes(box, 20, 10)
    assert clipped.tolist() == [[0, 2, 20, 10], [1, 1, 3, 3], [20, 10, 20, 10]]
    assert area(clipped).tolist() == [160, 4, 0]
