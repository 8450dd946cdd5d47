"""Regions of interest against loops that follow the definitions, torch's adaptive pool, and finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake
from descend.ops.detection.roi import roi_align, roi_pool
from tests.close import close


def make_regions(r: int = 9, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Maps of three images at stride 4, and regions of any shape, some across the border and one without area."""
    g = torch.Generator().manual_seed(seed)
    maps = torch.randn(3, 2, 7, 9, generator=g, dtype=torch.float64)
    low = torch.rand(r, 2, generator=g, dtype=torch.float64) * torch.tensor([36.0, 28.0]) - 4
    boxes = torch.cat([low, low + torch.rand(r, 2, generator=g, dtype=torch.float64) * 30], dim=1)
    boxes[-1, 2:] = boxes[-1, :2]
    return maps, boxes, torch.randint(3, (r,), generator=g)


def pool_by_loops(maps: np.ndarray, boxes: np.ndarray, owner: np.ndarray, size: int, scale: float) -> np.ndarray:
    h, w = maps.shape[2:]
    out = np.zeros((len(boxes), maps.shape[1], size, size))
    for r, (x0, y0, x1, y1) in enumerate(np.rint(boxes * scale).astype(int)):
        x0, x1, y0, y1 = (min(max(v, 0), most) for v, most in ((x0, w), (x1, w), (y0, h), (y1, h)))
        x0, y0 = min(x0, w - 1), min(y0, h - 1)
        crop = maps[owner[r], :, y0 : max(y1, y0 + 1), x0 : max(x1, x0 + 1)]
        n, m = crop.shape[1:]
        for i in range(size):
            for j in range(size):
                rows = slice(i * n // size, math.ceil((i + 1) * n / size))
                columns = slice(j * m // size, math.ceil((j + 1) * m / size))
                out[r, :, i, j] = crop[:, rows, columns].max(axis=(1, 2))
    return out


def read_bilinear(image: np.ndarray, y: float, x: float) -> np.ndarray:
    """One point of an image (c, h, w); cell j is at j. More than one cell outside there is nothing."""
    h, w = image.shape[1:]
    if not (-1 <= y <= h and -1 <= x <= w):
        return np.zeros(len(image))
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    i, j = int(y), int(x)
    below, right = min(i + 1, h - 1), min(j + 1, w - 1)
    v, u = y - i, x - j
    top = (1 - u) * image[:, i, j] + u * image[:, i, right]
    return (1 - v) * top + v * ((1 - u) * image[:, below, j] + u * image[:, below, right])


def align_by_loops(
    maps: np.ndarray,
    boxes: np.ndarray,
    owner: np.ndarray,
    size: int,
    scale: float,
    samples: int,
    shift: float,
    least: float,
) -> np.ndarray:
    out = np.zeros((len(boxes), maps.shape[1], size, size))
    for r, box in enumerate(boxes * scale - shift):
        width, height = max(box[2] - box[0], least) / size, max(box[3] - box[1], least) / size
        for i in range(size):
            for j in range(size):
                for p in range(samples):
                    for q in range(samples):
                        y = box[1] + (i + (p + 0.5) / samples) * height
                        x = box[0] + (j + (q + 0.5) / samples) * width
                        out[r, :, i, j] += read_bilinear(maps[owner[r]], y, x) / samples**2
    return out


@pytest.mark.system("fast-r-cnn")
@pytest.mark.system("fast-r-cnn", "roi-pooling")
@pytest.mark.parametrize("size", [1, 3, 7])
def test_pooling_is_its_definition(size: int) -> None:
    maps, boxes, owner = make_regions()
    close(
        roi_pool(maps, boxes, owner, size, 0.25), pool_by_loops(maps.numpy(), boxes.numpy(), owner.numpy(), size, 0.25)
    )


@pytest.mark.system("fast-r-cnn", "roi-pooling")
def test_whole_cells_are_an_adaptive_pool_of_the_crop() -> None:
    maps, _, _ = make_regions()
    boxes = torch.tensor([[4.0, 8.0, 32.0, 28.0], [0.0, 0.0, 36.0, 28.0], [8.0, 4.0, 20.0, 16.0]], dtype=torch.float64)
    got = roi_pool(maps, boxes, torch.tensor([0, 2, 1]), 2, 0.25)
    for row, image, (x0, y0, x1, y1) in zip(got, (0, 2, 1), (boxes / 4).long().tolist(), strict=True):
        close(row, F.adaptive_max_pool2d(maps[image, :, y0:y1, x0:x1], 2))


@pytest.mark.system("fast-r-cnn", "roi-pooling")
def test_gradients_of_the_pool() -> None:
    """Finite differences; and the gradient of a sum goes to the cells that have the maximum, once for each bin."""
    maps, boxes, owner = make_regions(4)
    assert torch.autograd.gradcheck(lambda m: roi_pool(m, boxes, owner, 3, 0.25), (maps.requires_grad_(),))
    grad = torch.autograd.grad(roi_pool(maps, boxes, owner, 3, 0.25).sum(), maps)[0]
    assert grad.sum() == 4 * 2 * 9
    assert (grad == grad.round()).all()


def test_many_regions_are_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    maps, boxes, owner = make_regions(30)
    whole = roi_pool(maps, boxes, owner, 3, 0.25)
    monkeypatch.setattr("descend.ops.detection.roi.CELLS", 500)
    assert torch.equal(roi_pool(maps, boxes, owner, 3, 0.25), whole)


@pytest.mark.system("faster-r-cnn")
@pytest.mark.system("faster-r-cnn", "roi-align")
@pytest.mark.parametrize("samples", [1, 2, 3])
@pytest.mark.parametrize(("shift", "least"), [(0.5, 0.0), (0.0, 1.0)], ids=["aligned", "first version"])
def test_align_is_its_definition(samples: int, shift: float, least: float) -> None:
    maps, boxes, owner = make_regions()
    ours = roi_align(maps, boxes, owner, 3, 0.25, samples, shift, least)
    close(ours, align_by_loops(maps.numpy(), boxes.numpy(), owner.numpy(), 3, 0.25, samples, shift, least))


@pytest.mark.system("faster-r-cnn", "roi-align")
def test_gradients_of_align() -> None:
    maps, boxes, owner = make_regions(4)
    assert torch.autograd.gradcheck(lambda m: roi_align(m, boxes, owner, 2, 0.25), (maps.requires_grad_(),))


@pytest.mark.system("faster-r-cnn", "roi-align")
def test_align_reads_a_plane_exactly() -> None:
    """On maps that are linear in x and y, bilinear reading has no error: a bin is the plane at its middle. A shift of
    the box by a fraction of a cell shows, where rounded regions do not move."""
    y, x = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    maps = torch.stack([x, y])[None].double()
    box = torch.tensor([[10.0, 14.0, 34.0, 44.0]], dtype=torch.float64)
    owner = torch.tensor([0])
    cells = roi_align(maps, box, owner, 3, 0.25)[0]
    close(cells[0, 0], (10 + 24 * (torch.arange(3, dtype=torch.float64) + 0.5) / 3) / 4 - 0.5)
    close(cells[1, :, 0], (14 + 30 * (torch.arange(3, dtype=torch.float64) + 0.5) / 3) / 4 - 0.5)
    moved = box + 1.0
    close(roi_align(maps, moved, owner, 3, 0.25)[0], cells + 0.25)
    assert torch.equal(roi_pool(maps, box + 0.4, owner, 3, 0.25), roi_pool(maps, box + 0.6, owner, 3, 0.25))


def test_order_images_and_emptiness() -> None:
    """A region does not depend on the others, nor on their order; no region at all gives no grid."""
    maps, boxes, owner = make_regions()
    order = torch.randperm(len(boxes), generator=torch.Generator().manual_seed(1))
    for op in (roi_pool, roi_align):
        whole = op(maps, boxes, owner, 3, 0.25)
        assert torch.equal(op(maps, boxes[order], owner[order], 3, 0.25), whole[order])
        assert torch.equal(op(maps, boxes[2:3], owner[2:3], 3, 0.25), whole[2:3])
        assert op(maps, boxes[:0], owner[:0], 3, 0.25).shape == (0, 2, 3, 3)
        with pytest.raises(Mistake, match="image 3"):
            op(maps, boxes, torch.full_like(owner, 3), 3, 0.25)
        with pytest.raises(ValueError, match="boxes"):
            op(maps, boxes[:, :3], owner, 3, 0.25)
