from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.contracts import Boxes
from descend.metrics.detection.confusion import count_confusions
from descend.metrics.detection.errors import NONE, find_errors
from descend.metrics.detection.evidence import DetectionEvidence, collect, lay_end_to_end
from descend.metrics.detection.pairing import BoxPairs, pair_up
from descend.ops.boxes import box_iou
from descend.ops.detection.hungarian import greedy_assign
from tests.metrics.detection.sets import CLASSES, random_set


def image(found: list[tuple[list[float], int, float]], truth: list[tuple[list[float], int, bool]]) -> DetectionEvidence:
    """Boxes with class and score; boxes with class and crowd."""
    a, b = (torch.tensor([x[0] for x in rows]).reshape(-1, 4) for rows in (found, truth))
    kinds, true_kinds = (torch.tensor([x[1] for x in rows], dtype=torch.long) for rows in (found, truth))
    scores, crowd = torch.tensor([x[2] for x in found]), torch.tensor([x[2] for x in truth], dtype=torch.bool)
    return DetectionEvidence(a, kinds, scores, b, true_kinds, crowd, (b[:, 2:] - b[:, :2]).prod(dim=1))


def scene() -> DetectionEvidence:
    """One of each: right, confused, loose, repeated, invented, below the score, in a crowd; and two missed."""
    at = lambda x: [float(x), 0.0, float(x) + 10, 10.0]
    found = [
        (at(0), 0, 0.9), (at(1), 0, 0.8), (at(20), 1, 0.7), (at(44), 1, 0.6),
        (at(80), 0, 0.5), (at(60), 1, 0.1), (at(101), 1, 0.9),
    ]  # fmt: skip
    truth = [
        (at(0), 0, False),
        (at(20), 0, False),
        (at(40), 1, False),
        (at(60), 1, False),
        ([90.0, 0, 140, 40], 1, True),
    ]
    return image(found, [*truth, ([0.0, 50, 5, 55], 1, False)])


@pytest.mark.system("average-precision-and-map", "confusion")
def test_every_kind_of_mistake() -> None:
    found = find_errors([image([], []), scene()], 2)
    kinds = {kind: [(e.image, e.found, e.truth) for e in errors] for kind, errors in found.items()}
    assert kinds == {
        "confused": [(1, 2, 1)],
        "loose": [(1, 3, 2)],
        "repeated": [(1, 1, 0)],
        "invented": [(1, 4, NONE)],
        "missed": [(1, NONE, 3), (1, NONE, 5)],
    }
    assert found["loose"][0].iou == pytest.approx(6 / 14)
    assert found["loose"][0].score == pytest.approx(0.6)


@pytest.mark.system("average-precision-and-map", "confusion")
def test_the_matrix_of_the_scene() -> None:
    """Rows: true 0, 1, invented. Columns: called 0, 1, missed. A loose box is invented, its object missed."""
    assert count_confusions([scene()], 2).tolist() == [[1, 1, 0], [0, 0, 3], [2, 1, 0]]


@pytest.mark.parametrize("coarse", [False, True])
def test_everything_is_counted_once(coarse: bool) -> None:
    evidence = random_set(1, coarse=coarse)
    table = count_confusions(evidence, CLASSES, least=0.4)
    flat = lay_end_to_end(evidence, CLASSES)
    assert table[:CLASSES].sum() == (~flat.crowd).sum()
    errors = find_errors(evidence, CLASSES, least=0.4)
    assert len(errors["confused"]) == table[:CLASSES, :CLASSES].sum() - table.diagonal()[:CLASSES].sum()
    assert len(errors["missed"]) + len(errors["loose"]) == table[:CLASSES, CLASSES].sum()
    wrong = len(errors["invented"]) + len(errors["repeated"])
    assert 0 <= wrong + len(errors["loose"]) - int(table[CLASSES].sum()) <= int(flat.crowd.sum()) * 10
    assert not count_confusions(evidence, CLASSES, least=1.1)[CLASSES].any()


def test_pairs_are_the_greedy_assignment_of_each_image() -> None:
    random = torch.Generator().manual_seed(0)
    low = torch.rand(2, 12, 2, generator=random) * 20
    boxes = torch.cat([low, low + 8], dim=-1)
    one, other = torch.arange(12).repeat_interleave(12), torch.arange(12).repeat(12)
    iou = box_iou(boxes[0][one], boxes[1][other])
    pairs = pair_up(BoxPairs(one, other, iou))
    expected = {(int(a), int(b)) for a, b in zip(*greedy_assign(-iou.view(12, 12)), strict=True)}
    assert {(int(a), int(b)) for a, b in zip(pairs.found, pairs.truth, strict=True)} == expected


def test_evidence_of_a_batch() -> None:
    """What pads is left out; without areas those of the boxes, without crowds none."""
    random = torch.Generator().manual_seed(0)

    def some(m: int) -> Boxes:
        low = torch.rand(2, m, 2, generator=random) * 20
        boxes: Tensor = torch.cat([low, low + 4], dim=-1)
        return Boxes(boxes, torch.tensor([[0] * m, [1] * (m - 2) + [-1] * 2]), torch.rand(2, m, generator=random))

    found, truth = some(5), some(3)
    first, second = collect(found, truth)
    assert [len(x) for x in first] == [5, 5, 5, 3, 3, 3, 3]
    assert [len(x) for x in second] == [3, 3, 3, 1, 1, 1, 1]
    assert torch.equal(second.boxes, found.boxes[1, :3])
    assert second.area.tolist() == pytest.approx([16.0])
    assert not second.crowd.any()
    assert collect(found, truth, crowd=truth.classes == 1)[1].crowd.all()
