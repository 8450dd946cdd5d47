from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.ops.boxes import pairwise_iou
from descend.ops.detection.matching import match_and_claim, match_and_rescue, match_by_threshold

FORMS = (match_by_threshold, match_and_rescue, match_and_claim)


def one_by_one(iou: Tensor, high: float, low: float, form: object) -> list[int]:
    """The same, anchor by anchor and box by box."""
    n, m = iou.shape
    found = []
    for i in range(n):
        best = max(range(m), key=lambda j: float(iou[i, j]))
        value = float(iou[i, best])
        found.append(best if value >= high else -1 if value < low else -2)
    if form is match_and_rescue:
        for i in range(n):
            if any(iou[i, j] > 0 and iou[i, j] == iou[:, j].max() for j in range(m)):
                found[i] = int(iou[i].argmax())
    if form is match_and_claim:
        claims: dict[int, list[int]] = {}
        for j in range(m):
            if iou[:, j].max() > 0:
                claims.setdefault(int(iou[:, j].argmax()), []).append(j)
        for i, boxes in claims.items():
            found[i] = max(boxes, key=lambda j: float(iou[i, j]))
    return found


@pytest.mark.system("anchor-boxes", "matching")
@pytest.mark.parametrize("form", FORMS)
def test_matching_one_by_one(form: object) -> None:
    random = torch.Generator().manual_seed(0)
    low = torch.rand(206, 2, generator=random) * 50
    boxes = torch.cat([low, low + 3 + torch.rand(206, 2, generator=random) * 30], dim=-1)
    iou = pairwise_iou(boxes[:200], boxes[200:])
    iou[:, 5] = 0  # a box that no anchor touches, as one that pads
    assert callable(form)
    found = form(iou, 0.5, 0.3)
    assert found.tolist() == one_by_one(iou, 0.5, 0.3, form)
    assert set(found.tolist()) > {-1, -2}
    assert torch.equal(form(torch.stack([iou, iou.flip(0)]), 0.5, 0.3), torch.stack([found, found.flip(0)]))
    assert form(iou[:, :0], 0.5, 0.3).tolist() == [-1] * 200
    assert form(iou[:0], 0.5, 0.3).shape == (0,)


@pytest.mark.system("anchor-boxes")
def test_a_box_that_no_anchor_overlaps_enough() -> None:
    """By threshold it is lost; either rescue gives it its best anchor."""
    iou = torch.tensor([[0.8, 0.2], [0.1, 0.3], [0.0, 0.1]])
    assert match_by_threshold(iou, 0.7, 0.3).tolist() == [0, -2, -1]
    assert match_and_rescue(iou, 0.7, 0.3).tolist() == [0, 1, -1]
    assert match_and_claim(iou, 0.7, 0.3).tolist() == [0, 1, -1]
    shared = torch.tensor([[0.6, 0.5], [0.1, 0.1]])  # both boxes like anchor 0 best
    assert match_and_rescue(shared, 0.7, 0.3).tolist() == [0, -1]
    assert match_and_claim(shared, 0.7, 0.3).tolist() == [0, -1]
