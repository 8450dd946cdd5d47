"""YOLO's grid: decoding and encoding, bounds, gradients, the predictions of a map, and who is responsible."""

from __future__ import annotations

import math

import pytest
import torch

from descend.ops.detection.yolo_grid import (
    Grid,
    decode_cells,
    encode_cells,
    find_responsible,
    make_cells,
    read_maps,
    score_classes,
    shape_iou,
)
from tests.close import close

BOX, HEAD = "yolo-box-parameterization", "yolo-head-and-grid"


def one_cell(column: int, row: int, width: float, height: float, stride: float) -> Grid:
    values = [[column, row]], [[width, height]], [stride]
    return Grid(*(torch.tensor(v, dtype=torch.float64) for v in values))


@pytest.mark.system(BOX)
@pytest.mark.system(BOX, "decode")
def test_the_books_cell() -> None:
    """MF 28.1.3: only the centre is scaled by the cell's size; anchors are in pixels."""
    t = torch.tensor([[0.1, 0.2, 0.5, 0.6]], dtype=torch.float64)
    box = decode_cells(t, one_cell(6, 6, 16, 16, 32))[0]
    close(box, torch.tensor([208.799334, 209.5946879, 26.37954033, 29.15390081], dtype=torch.float64), loosen=10)


@pytest.mark.system(BOX)
@pytest.mark.system(BOX, "inverse")
def test_encode_inverts_decode() -> None:
    torch.manual_seed(0)
    anchors = torch.tensor([[[16.0, 16.0], [40.0, 24.0]], [[90.0, 60.0], [70.0, 120.0]]], dtype=torch.float64)
    grid = make_cells([(4, 6), (2, 3)], [16, 32], anchors)
    t = 2 * torch.randn(5, len(grid.strides), 4, dtype=torch.float64)
    close(encode_cells(decode_cells(t, grid), grid), t)
    close(math.log(16 * math.exp(0.5) / 16), 0.5)


@pytest.mark.system(BOX, "bounds")
def test_a_centre_stays_in_its_cell_and_sizes_are_positive() -> None:
    torch.manual_seed(0)
    grid = make_cells([(3, 5)], [8], torch.tensor([[[10.0, 20.0]]]))
    box = decode_cells(100 * torch.randn(50, 15, 4), grid)
    inside = box[..., :2] / 8 - grid.cells
    assert ((inside >= 0) & (inside <= 1)).all()
    assert (box[..., 2:] >= 0).all()
    wide = decode_cells(torch.full((1, 15, 4), 100.0), grid, 1.2)[..., :2] / 8 - grid.cells
    close(wide, torch.full_like(wide, 1.1))  # stretched beyond the border


@pytest.mark.system(BOX, "gradients")
def test_the_exponential_does_not_bound_gradients() -> None:
    """Erratum of MF 24.1.2: ∂b_w/∂t_w = b_w; only the sigmoid's slope is at most ¼."""
    for t, slope in ((0.0, 16.0), (2.0, 118.2248976), (5.0, 2374.610546)):
        code = torch.tensor([[t, t, t, t]], dtype=torch.float64, requires_grad=True)
        box = decode_cells(code, one_cell(6, 6, 16, 16, 1))[0]
        by_width, by_centre = (torch.autograd.grad(box[i], code, retain_graph=True)[0][0, i] for i in (2, 0))
        close(by_width, torch.tensor(slope, dtype=torch.float64), loosen=10)  # printed with ten digits
        close(by_width, box[2])
        assert by_centre <= 0.25


@pytest.mark.system(HEAD)
@pytest.mark.system(HEAD, "prediction-vector")
def test_maps_are_read_in_order() -> None:
    """Number ((i · width) + j) · B + k of a level is row i, column j, anchor k; [t_x, t_y, t_w, t_h, o, c_1 .. c_K]."""
    torch.manual_seed(0)
    maps = [torch.randn(2, 2 * 8, 4, 6), torch.randn(2, 2 * 8, 2, 3)]
    anchors = torch.tensor([[[10.0, 10.0], [20.0, 12.0]], [[40.0, 40.0], [60.0, 90.0]]])
    found = read_maps(maps, anchors, [8, 16])
    assert found.logits.shape == (2, 4 * 6 * 2 + 2 * 3 * 2, 3)
    i, j, k = 3, 4, 1
    vector = maps[0][1, 8 * k : 8 * (k + 1), i, j]
    place = (i * 6 + j) * 2 + k
    assert torch.equal(found.t[1, place], vector[:4])
    assert found.objectness[1, place] == vector[4]
    assert torch.equal(found.logits[1, place], vector[5:])
    assert found.cells[place].tolist() == [4, 3]
    assert found.anchors[place].tolist() == [20, 12]
    assert found.strides.tolist() == [8] * 48 + [16] * 12
    vector, place = maps[1][0, 0:8, 1, 2], 48 + (1 * 3 + 2) * 2
    x = (float(vector[0].sigmoid()) + 2) * 16
    close(found.boxes[0, place, [0, 2]].mean(), torch.tensor(x))


@pytest.mark.system(HEAD, "score")
def test_the_score_is_objectness_times_class() -> None:
    torch.manual_seed(0)
    o, p = torch.rand(2, 5), torch.rand(2, 5, 4)
    scores, classes = score_classes(o, p)
    close(scores, (o[..., None] * p).amax(dim=-1))
    assert torch.equal(classes, (o[..., None] * p).argmax(dim=-1))


@pytest.mark.system(HEAD)
@pytest.mark.system(HEAD, "responsible")
def test_the_responsible_cell_and_anchor() -> None:
    """The cell that holds the centre; the anchor of the most similar shape over all levels; padding learns nothing."""
    anchors = torch.tensor([[[10.0, 10.0], [20.0, 12.0]], [[40.0, 40.0], [60.0, 90.0]]])
    grid = make_cells([(8, 8), (4, 4)], [8, 16], anchors)
    boxes = torch.tensor([[[20.0, 9.0, 41.0, 21.0], [0.0, 0.0, 38.0, 44.0], [1.0, 1.0, 60.0, 60.0]]])
    owners = find_responsible(boxes, torch.tensor([[2, 0, -1]]), grid)
    assert owners.shape == (1, 64 * 2 + 16 * 2)
    first = (1 * 8 + 3) * 2 + 1  # centre (30.5, 15): column 3, row 1 of stride 8; the shape 21 × 12 is the second
    second = 128 + (1 * 4 + 1) * 2  # centre (19, 22): column 1, row 1 of stride 16; the first shape there
    assert (owners >= 0).nonzero().tolist() == [[0, first], [0, second]]
    assert owners[0, [first, second]].tolist() == [0, 1]
    many = find_responsible(boxes, torch.tensor([[2, 0, -1]]), grid, tau=0.3)
    assert (many[0, [first, second]] >= 0).all()
    assert int((many >= 0).sum()) > 2
    close(shape_iou(torch.tensor([20.0, 10.0]), torch.tensor([10.0, 20.0])), torch.tensor(100 / 300))


@pytest.mark.system(HEAD, "responsible")
def test_of_two_objects_in_one_place_the_first_is_learned() -> None:
    grid = make_cells([(4, 4)], [8], torch.tensor([[[10.0, 10.0]]]))
    boxes = torch.tensor([[[4.0, 4.0, 14.0, 14.0], [5.0, 5.0, 14.0, 14.0]]])
    owners = find_responsible(boxes, torch.tensor([[1, 0]]), grid)
    assert owners[0, 5] == 0
    assert int((owners >= 0).sum()) == 1
    none = find_responsible(torch.zeros(2, 0, 4), torch.zeros(2, 0).long(), grid)
    assert (none == -1).all()
