"""YOLOv1's loss against a loop over cells and boxes, zero at the truth, and what it cannot hold."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.contracts import Boxes
from descend.losses.detection.yolo_v1 import YoloV1Loss, code_truth, find_cells
from descend.models.yolo_v1 import TINY, FoundCells, YoloV1, place_cells
from descend.ops.boxes import box_iou
from tests.close import close
from tests.losses.detection.scenes import check_empty, check_split, draw_scenes

pytestmark = pytest.mark.system("yolo-v1")
SIZE = torch.tensor([70.0, 70.0], dtype=torch.float64)


def guess(seed: int = 0) -> FoundCells:
    """Numbers of 2 images, 7 × 7 cells, 2 boxes and 3 classes."""
    torch.manual_seed(seed)
    centres, roots = torch.rand(2, 7, 7, 2, 2, dtype=torch.float64), torch.rand(2, 7, 7, 2, 2, dtype=torch.float64)
    confidence, classes = torch.rand(2, 7, 7, 2, dtype=torch.float64), torch.rand(2, 7, 7, 3, dtype=torch.float64)
    return FoundCells(centres, roots, confidence, classes, place_cells(centres, roots.square(), SIZE), SIZE)


TRUTH = Boxes(
    torch.tensor(
        [[[3.0, 5.0, 30.0, 44.0], [50.0, 40.0, 68.0, 52.0]], [[10.0, 10.0, 20.0, 30.0], [0.0, 0.0, 0.0, 0.0]]],
        dtype=torch.float64,
    ),
    torch.tensor([[1, 2], [0, -1]]),
    torch.tensor([[1.0, 1.0], [1.0, 0.0]]),
)


def loss_by_hand(found: FoundCells) -> dict[str, float]:
    """The four sums of the paper, cell by cell, over the three objects."""
    total = dict.fromkeys(("box", "objects", "background", "class"), 0.0)
    for i in range(2):
        held: dict[tuple[int, int], tuple[Tensor, int]] = {}
        for box, kind in zip(TRUTH.boxes[i], TRUTH.classes[i].tolist(), strict=True):
            if kind >= 0:
                x, y = ((box[:2] + box[2:]) / 2 / 10).tolist()
                held.setdefault((int(y), int(x)), (box, kind))
        for row in range(7):
            for column in range(7):
                confidence = found.confidence[i, row, column]
                best = -1
                if (row, column) in held:
                    box, kind = held[row, column]
                    iou = [float(box_iou(b, box)) for b in found.boxes[i, row, column]]
                    best = iou.index(max(iou))
                    x, y = (float(v) for v in (box[:2] + box[2:]) / 2 / 10)
                    px, py = found.centres[i, row, column, best].tolist()
                    rw, rh = found.roots[i, row, column, best].tolist()
                    w, h = ((box[2:] - box[:2]) / 70).tolist()
                    total["box"] += 5 * ((px - x + column) ** 2 + (py - y + row) ** 2)
                    total["box"] += 5 * ((rw - w**0.5) ** 2 + (rh - h**0.5) ** 2)
                    total["objects"] += (float(confidence[best]) - iou[best]) ** 2
                    wanted = [float(k == kind) for k in range(3)]
                    p = found.classes[i, row, column].tolist()
                    total["class"] += sum((a - b) ** 2 for a, b in zip(p, wanted, strict=True))
                for k in range(2):
                    total["background"] += 0.5 * float(confidence[k]) ** 2 * (k != best)
    return {name: value / 3 for name, value in total.items()}


@pytest.mark.system("yolo-v1", "loss")
def test_equal_to_a_loop() -> None:
    found = guess()
    terms = YoloV1Loss()(found, TRUTH, torch.zeros(2, 0)).terms
    for name, value in loss_by_hand(found).items():
        close(terms[name], torch.tensor(value, dtype=torch.float64))


@pytest.mark.system("yolo-v1", "loss")
def test_zero_at_the_truth_for_responsible_boxes_only() -> None:
    """A perfect prediction costs nothing; the coordinates of all other boxes count nothing."""
    found = guess()
    parts = {name: torch.zeros_like(part) for name, part in zip(found._fields, found, strict=True)}
    image, row, column, owner = find_cells(TRUTH, SIZE, 7, 7)
    centre, root = code_truth(TRUTH.boxes[image, owner], SIZE, 7, 7)
    parts["centres"][image, row, column, 0], parts["roots"][image, row, column, 0] = centre, root
    parts["confidence"][image, row, column, 0] = 1
    parts["classes"][image, row, column, TRUTH.classes[image, owner]] = 1
    parts["boxes"], parts["size"] = place_cells(parts["centres"], parts["roots"].square(), SIZE), SIZE
    close(parts["boxes"][image, row, column, 0], TRUTH.boxes[image, owner])  # encode, then decode
    perfect = FoundCells(**parts)
    assert YoloV1Loss()(perfect, TRUTH, torch.zeros(2, 0)).total() < 1e-20
    for field in ("centres", "roots"):
        moved = parts[field].clone()
        moved[image, row, column, 1] += 3
        assert YoloV1Loss()(perfect._replace(**{field: moved}), TRUTH, torch.zeros(2, 0)).total() < 1e-20
    assert YoloV1Loss(sure=1.0)(perfect, TRUTH, torch.zeros(2, 0)).total() < 1e-20


@pytest.mark.system("yolo-v1", "limits")
def test_a_cell_holds_one_object_and_one_class() -> None:
    """Of two objects in a cell the first is learned; every box of a cell gets the same class."""
    boxes = torch.tensor([[[20.0, 20.0, 30.0, 30.0], [21.0, 21.0, 29.0, 29.0]]])
    truth = Boxes(boxes, torch.tensor([[2, 1]]), torch.ones(1, 2))
    image, row, column, owner = find_cells(truth, torch.tensor([70.0, 70.0]), 7, 7)
    assert [image.tolist(), row.tolist(), column.tolist(), owner.tolist()] == [[0], [2], [2], [0]]
    torch.manual_seed(0)
    model = YoloV1(TINY).eval()
    found = model(torch.randn(1, *TINY.image))
    kept = model.decode(found._replace(confidence=torch.ones_like(found.confidence)), most=1000)
    at = kept.classes[kept.classes >= 0].shape[0]
    assert at <= found.confidence.numel()
    one = found.classes.argmax(dim=-1)
    middle = (kept.boxes[0, :, :2] + kept.boxes[0, :, 2:]) / 2
    assert found.classes.shape[-2:] == (6, 3)  # one set of probabilities for a cell, not for a box
    assert set(kept.classes[0].tolist()) <= set(one.unique().tolist()) | {-1}
    assert len(middle) == kept.classes.shape[1]


def test_splits_and_empty_images() -> None:
    torch.manual_seed(0)
    model = YoloV1(TINY)
    x, truth = draw_scenes(side=48)
    check_split(model(x[:, :, :32]), truth, YoloV1Loss())
    none = Boxes(torch.zeros(2, 0, 4), torch.zeros(2, 0).long(), torch.zeros(2, 0))
    assert torch.isfinite(YoloV1Loss()(model(x[:2, :, :32]), none, torch.zeros(2, 0)).total())


def test_gradcheck() -> None:
    found = guess()

    def loss(centres: Tensor, roots: Tensor, confidence: Tensor, classes: Tensor) -> Tensor:
        moved = found._replace(centres=centres, roots=roots, confidence=confidence, classes=classes)
        return YoloV1Loss()(moved, TRUTH, torch.zeros(2, 0)).total()

    assert torch.autograd.gradcheck(loss, [part.requires_grad_() for part in found[:4]], fast_mode=True)


def test_check_empty_scenes() -> None:
    config = YoloV1(TINY).config
    model = YoloV1(type(config)(**{**vars(config), "image": (3, 64, 64)}))
    check_empty(model, YoloV1Loss())
