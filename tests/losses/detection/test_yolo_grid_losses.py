"""The losses of YOLOv2, v3, v4 and of MF's chapter: against loops, at the truth, split, and without objects."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.contracts import Boxes, Criterion
from descend.losses.detection.yolo_chapter import (
    YoloChapterLoss,
    class_error,
    find_owners,
    objectness_error,
    root_size_loss,
)
from descend.losses.detection.yolo_v2 import YoloV2Loss
from descend.losses.detection.yolo_v3 import YoloV3Loss, independent_loss
from descend.losses.detection.yolo_v4 import YoloV4DistanceLoss, YoloV4Loss
from descend.models.yolo_v3 import TINY, YoloV3
from descend.ops.boxes import box_iou, to_centre, to_corners
from descend.ops.detection.yolo_grid import GridFound, decode_cells, encode_cells, find_responsible, make_cells
from tests.close import close
from tests.losses.detection.scenes import check_empty, check_split, draw_scenes

NONE = torch.zeros(2, 0)
ANCHORS = torch.tensor([[[10.0, 10.0], [20.0, 12.0]], [[40.0, 40.0], [30.0, 50.0]]], dtype=torch.float64)
GRID = make_cells([(8, 8), (4, 4)], [8, 16], ANCHORS)
TRUTH = Boxes(
    torch.tensor(
        [[[20.0, 9.0, 41.0, 21.0], [0.0, 0.0, 38.0, 44.0]], [[30.0, 30.0, 42.0, 39.0], [0.0, 0.0, 0.0, 0.0]]],
        dtype=torch.float64,
    ),
    torch.tensor([[2, 0], [1, -1]]),
    torch.tensor([[1.0, 1.0], [1.0, 0.0]]),
)


def guess(seed: int = 0) -> GridFound:
    torch.manual_seed(seed)
    n = len(GRID.strides)
    t = torch.randn(2, n, 4, dtype=torch.float64)
    o, c = torch.randn(2, n, dtype=torch.float64), torch.randn(2, n, 3, dtype=torch.float64)
    return GridFound(t, o, c, to_corners(decode_cells(t, GRID)), *GRID)


def answer(scale: float = 30.0) -> GridFound:
    """What would be right, with logits of ±scale."""
    owners = find_responsible(TRUTH.boxes, TRUTH.classes, GRID)
    image, place = (owners >= 0).nonzero(as_tuple=True)
    found = guess()
    t, o, c = torch.zeros_like(found.t), torch.full_like(found.objectness, -scale), found.logits * 0 - scale
    true = TRUTH.boxes[image, owners[image, place]]
    t[image, place] = encode_cells(to_centre(true), type(GRID)(*(part[place] for part in GRID)))
    o[image, place] = scale
    c[image, place, TRUTH.classes[image, owners[image, place]]] = scale
    return GridFound(t, o, c, to_corners(decode_cells(t, GRID)), *GRID)


def positives_by_hand() -> list[tuple[int, int, int]]:
    """Image, prediction and object, by loops over cells and anchors."""
    found = []
    for i in range(2):
        for j, kind in enumerate(TRUTH.classes[i].tolist()):
            if kind < 0:
                continue
            x0, y0, x1, y1 = TRUTH.boxes[i, j].tolist()
            w, h, best, at = x1 - x0, y1 - y0, -1.0, -1
            for n, (cell, anchor, s) in enumerate(zip(*(part.tolist() for part in GRID), strict=True)):
                if [(x0 + x1) / 2 // s, (y0 + y1) / 2 // s] == cell:
                    both = min(w, anchor[0]) * min(h, anchor[1])
                    iou = both / (w * h + anchor[0] * anchor[1] - both)
                    best, at = max((best, at), (iou, n))
            found.append((i, at, j))
    return found


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def v3_by_hand(found: GridFound) -> dict[str, float]:
    positives = positives_by_hand()
    total = dict.fromkeys(("box", "objectness", "class"), 0.0)
    for i, n, j in positives:
        box = TRUTH.boxes[i, j]
        (cx, cy, w, h), s = to_centre(box).tolist(), float(GRID.strides[n])
        (col, row), (pw, ph) = GRID.cells[n].tolist(), GRID.anchors[n].tolist()
        tx, ty, tw, th = found.t[i, n].tolist()
        error = (sigmoid(tx) - cx / s + col) ** 2 + (sigmoid(ty) - cy / s + row) ** 2
        error += (tw - math.log(w / pw)) ** 2 + (th - math.log(h / ph)) ** 2
        total["box"] += (2 - w * h / 64**2) * error
        for k, z in enumerate(found.logits[i, n].tolist()):
            total["class"] -= math.log(sigmoid(z) if k == TRUTH.classes[i, j] else 1 - sigmoid(z))
    taken = {(i, n) for i, n, _ in positives}
    for i in range(2):
        for n, z in enumerate(found.objectness[i].tolist()):
            best = max(float(box_iou(found.boxes[i, n], b)) for b in TRUTH.boxes[i])
            if (i, n) in taken:
                total["objectness"] -= math.log(sigmoid(z))
            elif best <= 0.5:
                total["objectness"] -= math.log(1 - sigmoid(z))
    return {name: value / 3 for name, value in total.items()}


@pytest.mark.system("yolo-v3")
@pytest.mark.system("yolo-v3", "loss")
def test_v3_equal_to_a_loop() -> None:
    found = guess()
    terms = YoloV3Loss()(found, TRUTH, NONE).terms
    for name, value in v3_by_hand(found).items():
        close(terms[name], torch.tensor(value, dtype=torch.float64))


@pytest.mark.system("yolo-v2")
@pytest.mark.system("yolo-v2", "loss")
def test_v2_terms() -> None:
    """Objectness is asked for the IoU; classes exclude each other; the box is that of v3."""
    found, positives = guess(), positives_by_hand()
    terms = YoloV2Loss()(found, TRUTH, NONE).terms
    close(terms["box"], torch.tensor(v3_by_hand(found)["box"], dtype=torch.float64))
    hits = [(sigmoid(float(found.objectness[i, n])) - float(box_iou(found.boxes[i, n], TRUTH.boxes[i, j]))) ** 2
            for i, n, j in positives]  # fmt: skip
    close(terms["objects"], torch.tensor(5 * sum(hits) / 3, dtype=torch.float64))
    by_class = [F.cross_entropy(found.logits[i, n], TRUTH.classes[i, j]) for i, n, j in positives]
    close(terms["class"], torch.stack(by_class).sum() / 3)


LOSSES: list[Criterion] = [YoloV2Loss(), YoloV3Loss(), YoloV4Loss(), YoloV4DistanceLoss(), YoloChapterLoss(centre=1.0)]
MARKS = ["yolo-v2", "yolo-v3", "yolo-v4-v5", "yolo-v4-v5", "yolo-loss"]
CASES = [
    pytest.param(loss, id=type(loss).__name__, marks=pytest.mark.system(mark))
    for loss, mark in zip(LOSSES, MARKS, strict=True)
]


@pytest.mark.parametrize("criterion", CASES)
def test_zero_at_the_truth(criterion: Criterion) -> None:
    found = answer()
    if isinstance(criterion, YoloV4Loss | YoloChapterLoss):
        criterion = type(criterion)(tau=1.0)  # the best anchor alone: the other ones have not been set
    assert criterion(found, TRUTH, NONE).total() < 1e-6


@pytest.mark.parametrize("criterion", CASES)
def test_splits_and_empty_images(criterion: Criterion) -> None:
    torch.manual_seed(0)
    model = YoloV3(TINY)
    x, truth = draw_scenes()
    check_split(model(x), truth, criterion)
    check_empty(model, criterion)


@pytest.mark.parametrize("criterion", CASES)
def test_gradients(criterion: Criterion) -> None:
    found = guess()

    def loss(t: Tensor, o: Tensor, c: Tensor) -> Tensor:
        moved = found._replace(t=t, objectness=o, logits=c, boxes=to_corners(decode_cells(t, GRID)))
        return criterion(moved, TRUTH, NONE).total()

    if isinstance(criterion, YoloV2Loss | YoloV4Loss):  # constants on purpose: the IoU asked of o, the weight of CIoU
        loss(*(part.requires_grad_() for part in found[:3])).backward()
        assert all(torch.isfinite(part.grad).all() and part.grad.any() for part in found[:3])
    else:
        assert torch.autograd.gradcheck(loss, [part.requires_grad_() for part in found[:3]], fast_mode=True)


@pytest.mark.system("yolo-v3")
@pytest.mark.system("yolo-v3", "multi-label")
def test_independent_classes() -> None:
    """Equal to BCE summed; two labels reach 0 in the limit, where a softmax ends at 2 ln 2."""
    z = torch.randn(4, 5, dtype=torch.float64)
    y = (torch.rand(4, 5, dtype=torch.float64) > 0.5).double()
    close(independent_loss(z, y), F.binary_cross_entropy_with_logits(z, y, reduction="none").sum(-1))
    both = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)
    assert independent_loss(40 * (2 * both - 1), both) < 1e-12
    softmax = lambda z: -(both * z.log_softmax(-1)).sum()
    close(softmax(torch.tensor([40.0, 40.0, -40.0], dtype=torch.float64)), torch.tensor(2 * math.log(2)).double(), 100)
    assert all(softmax(5 * torch.randn(3, dtype=torch.float64)) >= 2 * math.log(2) for _ in range(50))


@pytest.mark.system("yolo-v3", "multi-label")
def test_an_object_may_have_two_classes() -> None:
    """A woman is a person: two rows with one box ask one prediction for both classes."""
    truth = Boxes(TRUTH.boxes[:1, :1].expand(1, 2, 4), torch.tensor([[2, 1]]), torch.ones(1, 2))
    found = answer()
    one = GridFound(*(part[:1] for part in found[:4]), *GRID)
    n = positives_by_hand()[0][1]
    objectness = torch.full_like(one.objectness, -30.0)
    objectness[0, n] = 30
    logits = one.logits.clone()
    logits[0, n] = torch.tensor([-30.0, 30.0, 30.0])
    right = one._replace(objectness=objectness, logits=logits)
    assert YoloV3Loss()(right, truth, torch.zeros(1, 0)).terms["class"] < 1e-9
    logits[0, n, 1] = -30
    assert YoloV3Loss()(right._replace(logits=logits), truth, torch.zeros(1, 0)).terms["class"] > 10


@pytest.mark.system("yolo-v4-v5")
@pytest.mark.system("yolo-v4-v5", "ciou")
def test_v4_learns_at_several_anchors_and_where_boxes_are_apart() -> None:
    found = guess()
    many = (find_responsible(TRUTH.boxes, TRUTH.classes, GRID, 0.213) >= 0).sum()
    assert many > 3
    far = found.t.detach().clone()
    far[..., 2:] = -4.0  # tiny boxes that touch little
    far.requires_grad_()
    boxes = to_corners(decode_cells(far, GRID))
    for criterion in (YoloV4Loss(), YoloV4DistanceLoss()):
        term = criterion(found._replace(t=far, boxes=boxes), TRUTH, NONE).terms["box"]
        gradient = torch.autograd.grad(term, far, retain_graph=True)[0]
        assert gradient[..., :2].abs().sum() > 0
        assert gradient[..., 2:].abs().sum() > 0


@pytest.mark.system("yolo-loss")
@pytest.mark.system("yolo-loss", "walkthrough")
def test_the_walkthrough() -> None:
    """MF 28.1.4 and 28.1.5, with the errata: 27.4532 for the printed 2.8, 137.326 for 14.06."""
    real = lambda *values: torch.tensor(values, dtype=torch.float64)
    box = root_size_loss(real(26, 29), real(80, 80))
    close(box, real(27.45320936)[0], loosen=10)  # ten digits
    o = objectness_error(real(0.9), torch.tensor([True])).sum()
    c = class_error(real(0.8, 0.1), real(1, 0))
    close(o, real(0.01)[0])
    close(c, real(0.05)[0])
    close(5 * box + o + c, real(137.3260468)[0], loosen=10)


@pytest.mark.system("yolo-loss")
@pytest.mark.system("yolo-loss", "walkthrough")
def test_the_walkthrough_by_the_criterion() -> None:
    """The same by the whole loss: one cell [6, 6] of one image, whose box is not rounded, and no other prediction."""
    grid = make_cells([(7, 7)], [32], torch.tensor([[[16.0, 16.0]]], dtype=torch.float64))
    t = torch.tensor([0.1, 0.2, 0.5, 0.6], dtype=torch.float64).expand(1, 49, 4)
    o = torch.full((1, 49), math.log(9.0), dtype=torch.float64)  # σ = 0.9
    c = torch.tensor([math.log(4.0), math.log(1 / 9)], dtype=torch.float64).expand(1, 49, 2)  # 0.8, 0.1
    found = GridFound(t, o, c, to_corners(decode_cells(t, grid)), *grid)
    truth = Boxes(torch.tensor([[[168.0, 168.0, 248.0, 248.0]]]).double(), torch.tensor([[0]]), torch.ones(1, 1))
    terms = YoloChapterLoss()(found, truth, torch.zeros(1, 0)).terms
    close(terms["box"], torch.tensor(5 * 27.06802769, dtype=torch.float64), loosen=10)
    close(terms["class"], torch.tensor(0.05, dtype=torch.float64))
    close(terms["objectness"], torch.tensor((0.01 + 48 * 0.5 * 0.81) / 48, dtype=torch.float64))  # both over N_bg


@pytest.mark.system("yolo-loss", "form")
def test_the_chapter_has_no_centre_term() -> None:
    found = guess()
    owners = find_owners(found, TRUTH, 0.99)
    shifted = found.t.clone()
    shifted[..., :2] += 0.5
    moved = found._replace(t=shifted, boxes=to_corners(decode_cells(shifted, GRID)))
    plain, centred = YoloChapterLoss(tau=0.99), YoloChapterLoss(tau=0.99, centre=1.0)
    if torch.equal(find_owners(moved, TRUTH, 0.99), owners):
        close(plain(moved, TRUTH, NONE).total(), plain(found, TRUTH, NONE).total())
    assert "centre" not in plain(found, TRUTH, NONE).terms
    assert centred(moved, TRUTH, NONE).terms["centre"] != centred(found, TRUTH, NONE).terms["centre"]


@pytest.mark.system("yolo-loss", "threshold")
def test_boxes_above_the_threshold_are_positive() -> None:
    """All predictions of an object's cells whose IoU is above τ, and always the best."""
    found = guess()
    few, many = (find_owners(found, TRUTH, tau) for tau in (0.99, 0.01))
    assert int((few >= 0).sum()) == 3
    assert int((many >= 0).sum()) > 3
    assert ((few >= 0) <= (many >= 0)).all()


@pytest.mark.system("yolo-loss")
@pytest.mark.system("yolo-loss", "square-root")
def test_what_the_square_root_does() -> None:
    """Inconsistent in MF 24.5.2: at equal relative error the loss grows like w, where squares grow like w²."""
    w = torch.tensor([[10.0, 1.0], [100.0, 1.0]], dtype=torch.float64)
    grown = w * torch.tensor([1.1, 1.0], dtype=torch.float64)
    small, large = root_size_loss(grown, w)
    close(large / small, torch.tensor(10.0, dtype=torch.float64))
    plus = w + torch.tensor([5.0, 0.0], dtype=torch.float64)
    small, large = root_size_loss(plus, w)
    close(small / large, torch.tensor(8.282450043, dtype=torch.float64), loosen=10)
