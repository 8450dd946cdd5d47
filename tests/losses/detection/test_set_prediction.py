"""Losses of sets: transformers' on the same outputs, the books' walk-through, brute force, order, splits, gradients."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from descend.contracts import Boxes, Criterion, count_units
from descend.losses.detection.set_matching import certain_class_cost, match, scale_truth
from descend.losses.detection.set_prediction import CertainSetPrediction, FocalSetPrediction, SetPrediction
from descend.ops.boxes import to_centre
from descend.ops.detection.sets import SetFound
from tests.close import close

CRITERIA = [SetPrediction(), CertainSetPrediction(), FocalSetPrediction()]
NONE = torch.zeros(3, 0)


def make(layers: int = 3, n: int = 6, k: int = 4, seed: int = 0) -> tuple[SetFound, Boxes]:
    """Predictions for three images of 80×60, the second without objects, the last with padding before its objects."""
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(layers, 3, n, k, generator=random) * 2
    boxes = torch.rand(layers, 3, n, 4, generator=random) * 0.5 + 0.2
    corner, size = torch.rand(3, 3, 2, generator=random) * 30, torch.rand(3, 3, 2, generator=random) * 25 + 3
    classes = torch.tensor([[0, 2, 1], [-1, -1, -1], [-1, 1, 0]])
    truth = Boxes(torch.cat([corner, corner + size], -1), classes, (classes >= 0).float())
    return SetFound(logits, boxes, torch.tensor([80.0, 60.0, 80.0, 60.0])), truth


def labels(truth: Boxes) -> list[dict[str, Tensor]]:
    """As transformers takes them."""
    shares = to_centre(truth.boxes / torch.tensor([80.0, 60.0, 80.0, 60.0]))
    return [{"class_labels": c[c >= 0], "boxes": b[c >= 0]} for b, c in zip(shares, truth.classes, strict=True)]


@pytest.mark.system("detr-losses")
@pytest.mark.system("detr-losses", "original-form", "auxiliary")
def test_the_original_is_theirs() -> None:
    """Before the division: theirs by the number of boxes, and the class term by the sum of the weights."""
    peer = pytest.importorskip("transformers.loss.loss_for_object_detection")
    found, truth = make()
    matcher = peer.HungarianMatcher(class_cost=1, bbox_cost=5, giou_cost=2)
    criterion = peer.ImageLoss(matcher=matcher, num_classes=3, eos_coef=0.1, losses=["labels", "boxes"])
    theirs = {"class": 0.0, "l1": 0.0, "giou": 0.0}
    for logits, boxes in zip(found.logits, found.boxes, strict=True):
        one: Any = criterion({"logits": logits, "pred_boxes": boxes}, labels(truth))
        theirs["class"] += one["loss_ce"] * (5 + 0.1 * (3 * 6 - 5))
        theirs["l1"] += 5 * one["loss_bbox"] * 5
        theirs["giou"] += 2 * one["loss_giou"] * 5
    ours = SetPrediction()(found, truth, NONE)
    assert ours.terms.keys() == theirs.keys()
    assert int(count_units(truth)) == 6  # five objects, and one for the image without any
    for name, value in theirs.items():
        close(ours.terms[name] * count_units(truth), value)
    last = SetFound(found.logits[-1:], found.boxes[-1:], found.sides)
    alone = [SetPrediction()(SetFound(a[None], b[None], found.sides), truth, NONE).total()
             for a, b in zip(found.logits, found.boxes, strict=True)]  # fmt: skip
    close(ours.total(), sum(alone))
    assert SetPrediction()(last, truth, NONE).total() < ours.total()


@pytest.mark.system("detr-losses", "sigmoid-form")
def test_the_focal_form_is_theirs() -> None:
    peer = pytest.importorskip("transformers.loss.loss_deformable_detr")
    found, truth = make()
    matcher = peer.DeformableDetrHungarianMatcher(class_cost=2, bbox_cost=5, giou_cost=2)
    criterion = peer.DeformableDetrImageLoss(
        matcher=matcher, num_classes=4, focal_alpha=0.25, losses=["labels", "boxes"]
    )
    ours = FocalSetPrediction()(found, truth, NONE)
    theirs = {"class": 0.0, "l1": 0.0, "giou": 0.0}
    for logits, boxes in zip(found.logits, found.boxes, strict=True):
        one: Any = criterion({"logits": logits, "pred_boxes": boxes}, labels(truth))
        theirs["class"] += 2 * one["loss_ce"] * 5
        theirs["l1"] += 5 * one["loss_bbox"] * 5
        theirs["giou"] += 2 * one["loss_giou"] * 5
    for name, value in theirs.items():
        close(ours.terms[name] * count_units(truth), value)


@pytest.mark.system("detr-losses", "text-form")
def test_the_texts_walkthrough() -> None:
    """One query, sure of its class with 0.8, and a box with GIoU 0.8: cost 0.2, loss 1 + 2 · 0.0089 = 1.0179."""
    logits = torch.tensor([0.1, 0.8, 0.1], dtype=torch.float64).log()  # person, car, no object: the car
    box = torch.tensor([0.0, 0.0, 80.0, 60.0])
    truth = Boxes(box[None, None].double(), torch.tensor([[1]]), torch.ones(1, 1))
    shares = torch.tensor([0.4, 0.5, 0.8, 1.0], dtype=torch.float64)  # inside, 0.8 of the area: GIoU = IoU = 0.8
    found = SetFound(logits[None, None, None], shares[None, None, None], torch.tensor([80.0, 60.0, 80.0, 60.0]))
    criterion = CertainSetPrediction()
    close(criterion.cost(found, scale_truth(truth, found.sides)).flatten(), torch.tensor([0.2], dtype=torch.float64))
    ours = criterion(found, truth, NONE[:1])
    close(ours.terms["class"], torch.tensor(0.01785148411, dtype=torch.float64))
    close(ours.terms["giou"], torch.tensor(1.0, dtype=torch.float64))
    close(ours.total(), torch.tensor(1.017851484, dtype=torch.float64))


@pytest.mark.system("detr-losses", "text-form")
def test_p_correct() -> None:
    """p_c for objects of the class that the query is surest of, 1 − p_c for all others."""
    p = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    cost = certain_class_cost(p.log()[None], torch.tensor([[0, 1, -1]]))
    close(cost[0, :, :2], torch.tensor([[-0.7, -0.3], [-0.4, -0.4]]))


@pytest.mark.system("detr-losses", "exact-matching")
@pytest.mark.parametrize("seed", range(4))
def test_matching_is_the_exact_minimum(seed: int) -> None:
    cost = torch.randn(2, 3, 5, 3, generator=torch.Generator().manual_seed(seed))
    classes = torch.tensor([[0, 1, 2], [-1, -1, -1], [-1, 2, 0]])
    pairs = match(cost, classes)
    for layer in range(2):
        for image, real in enumerate(([0, 1, 2], [], [1, 2])):
            of_this = (pairs.layer == layer) & (pairs.image == image)
            queries, objects = pairs.query[of_this], pairs.object[of_this]
            assert sorted(objects.tolist()) == real
            assert len(set(queries.tolist())) == len(real)
            table = cost[layer, image]
            best = min(sum(float(table[q, o]) for q, o in zip(some, real, strict=True))
                       for some in permutations(range(5), len(real)))  # fmt: skip
            assert abs(float(table[queries, objects].sum()) - best) < 1e-5


@pytest.mark.system("detr-losses", "exact-matching")
def test_matching_costs_what_scipys_costs() -> None:
    cost = torch.rand(1, 4, 30, 9, generator=torch.Generator().manual_seed(1))
    pairs = match(cost, torch.zeros(4, 9, dtype=torch.long))
    for image, table in enumerate(cost[0]):
        of_this = pairs.image == image
        expected = table.numpy()[linear_sum_assignment(table.numpy())].sum()
        close(table[pairs.query[of_this], pairs.object[of_this]].sum(), torch.tensor(expected))


def test_more_objects_than_queries_and_no_numbers() -> None:
    """The costliest objects go without; what is no number is matched last."""
    cost = torch.tensor([[3.0, 1.0, 2.0]])[None, None]
    assert match(cost, torch.tensor([[0, 0, 0]])).object.tolist() == [1]
    cost = torch.tensor([[float("nan"), 1.0], [5.0, 1.0]])[None, None]
    pairs = match(cost, torch.tensor([[0, 0]]))
    assert sorted(zip(pairs.query.tolist(), pairs.object.tolist(), strict=True)) == [(0, 1), (1, 0)]


@pytest.mark.system("detr-losses", "split-and-order")
@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda c: type(c).__name__)
def test_order_and_splits(criterion: Criterion) -> None:
    found, truth = make()
    whole = criterion(found, truth, NONE)
    order = torch.tensor([2, 0, 1])
    close(criterion(found, Boxes(*(part[:, order] for part in truth)), NONE).total(), whole.total())
    sums = torch.zeros(())
    for part in ([0], [1, 2]):
        some = SetFound(found.logits[:, part], found.boxes[:, part], found.sides)
        true = Boxes(*(x[part] for x in truth))
        sums += criterion(some, true, NONE[part]).total() * count_units(true)
    close(sums / count_units(truth), whole.total())


@pytest.mark.system("detr-losses", "split-and-order")
@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda c: type(c).__name__)
@pytest.mark.parametrize("padded", [0, 2])
def test_nothing_but_background(criterion: Criterion, padded: int) -> None:
    """Images without objects teach silence: a class term with a gradient, and no box terms."""
    found, _ = make(layers=2)
    found = found._replace(logits=found.logits.requires_grad_(), boxes=found.boxes.requires_grad_())
    none = Boxes(torch.zeros(3, padded, 4), torch.full((3, padded), -1), torch.zeros(3, padded))
    loss = criterion(found, none, NONE)
    loss.total().backward()
    assert float(loss.terms["giou"]) == 0
    assert found.logits.grad is not None
    assert found.logits.grad.abs().sum() > 0
    assert found.boxes.grad is None or found.boxes.grad.abs().sum() == 0


@pytest.mark.system("detr-losses")
@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda c: type(c).__name__)
def test_gradients(criterion: Criterion) -> None:
    found, truth = make(layers=1, n=3)
    truth = Boxes(truth.boxes.double(), truth.classes, truth.scores)
    logits, boxes = found.logits.double().requires_grad_(), found.boxes.double().requires_grad_()

    def loss(a: Tensor, b: Tensor) -> Tensor:
        return criterion(SetFound(a, b, found.sides.double()), truth, NONE).total()

    assert torch.autograd.gradcheck(loss, (logits, boxes))
