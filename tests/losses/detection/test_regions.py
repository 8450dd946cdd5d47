"""The loss of the second stage against loops over regions, and what it asks of the model."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from descend.contracts import Boxes, count_units
from descend.losses.detection.region_proposals import RegionProposalLoss
from descend.losses.detection.regions import RegionLoss, TwoStageLoss
from descend.nn.detection.roi import Refined
from descend.ops.detection.sampling import draw_keys
from tests.close import close
from tests.losses.detection.test_region_proposals import iou, make_found
from tests.rectangles import make_rectangles, part_of

K = 3


def answer(boxes: Tensor, owner: Tensor) -> Refined:
    """A second stage that depends on the region's own numbers alone."""
    w = torch.linspace(-1, 1, 5 * (K + 1) * 5, dtype=torch.float64).view(5, K + 1, 5)
    f = torch.cat([boxes.double() / 48, owner[:, None] * 0.0 + 1], dim=1).sin() @ w.flatten(1)
    f = f.view(-1, K + 1, 5)
    return Refined(f[..., 0], f[..., 1:])


def make_regions(images: int) -> SimpleNamespace:
    g = torch.Generator().manual_seed(1)
    low = torch.rand(images, 30, 2, generator=g) * 30
    found = make_found(images)
    found.proposals = torch.cat([low, low + 6 + 18 * torch.rand(images, 30, 2, generator=g)], dim=-1)
    found.real = torch.rand(images, 30, generator=g) < 0.8
    found.refine = answer
    return found


def by_loops(found: SimpleNamespace, truth: Boxes, u: Tensor, rule: RegionLoss) -> tuple[float, float]:
    named = moved = 0.0
    for i in range(len(truth.boxes)):
        boxes = torch.cat([truth.boxes[i], found.proposals[i]])
        real = [*(truth.classes[i] >= 0).tolist(), *found.real[i].tolist()]
        true = [j for j in range(len(truth.classes[i])) if truth.classes[i, j] >= 0]
        keys = draw_keys(u[i : i + 1, 0], len(boxes))[0].numpy()
        kind: dict[int, int] = {}
        for r in (r for r in np.argsort(keys, kind="stable") if real[r]):
            overlaps = [iou(boxes[r].numpy(), truth.boxes[i, j].numpy()) for j in true]
            good = bool(overlaps) and max(overlaps) >= rule.high
            kind[int(r)] = true[int(np.argmax(overlaps))] if good else -1
        objects = [r for r in kind if kind[r] >= 0][: int(rule.regions * rule.share)]
        others = [r for r in kind if kind[r] < 0][: rule.regions - len(objects)]
        s = len(objects) + len(others)
        for r in (*objects, *others):
            z, t = (v[0] for v in answer(boxes[r : r + 1], torch.zeros(1)))
            y = int(truth.classes[i, kind[r]]) + 1 if r in objects else 0
            named += -float(z.log_softmax(0)[y]) / s
            if y:
                (x0, y0, x1, y1), (a, b, c, d) = boxes[r].tolist(), truth.boxes[i, kind[r]].tolist()
                w, h = x1 - x0, y1 - y0
                wanted = [10 * ((a + c) - (x0 + x1)) / 2 / w, 10 * ((b + d) - (y0 + y1)) / 2 / h]
                wanted += [5 * np.log((c - a) / w), 5 * np.log((d - b) / h)]
                e = np.abs(t[y].numpy() - wanted)
                moved += np.where(e < rule.beta, e**2 / (2 * rule.beta), e - rule.beta / 2).sum() / s
    units = float(count_units(truth))
    return rule.classes * named / units, rule.box * moved / units


@pytest.mark.system("fast-r-cnn")
@pytest.mark.system("faster-r-cnn")
@pytest.mark.system("r-cnn")
@pytest.mark.parametrize(
    "rule", [RegionLoss(), RegionLoss(2.0, 0.5, 12, 0.5, 0.3, 1.0)], ids=["original", "other numbers"]
)
def test_equal_to_loops(rule: RegionLoss) -> None:
    _, truth = make_rectangles(5)
    found, u = make_regions(5), torch.rand(5, 1, generator=torch.Generator().manual_seed(3))
    terms = rule(found, truth, u).terms
    classes, box = by_loops(found, truth, u, rule)
    close(terms["classes"], classes)
    close(terms["box"], box)


@pytest.mark.system("faster-r-cnn", "split")
def test_splitting_changes_nothing() -> None:
    """Both stages, with an image without objects; regions are chosen by each image's own random numbers."""
    _, truth = make_rectangles(6)
    found, u = make_regions(6), torch.rand(6, 2, generator=torch.Generator().manual_seed(3))
    rule = TwoStageLoss(RegionProposalLoss(anchors=30), RegionLoss(regions=12))
    whole, units = rule(found, truth, u).terms, int(count_units(truth))
    assert set(whole) == {"objectness", "proposal_box", "classes", "box"}
    for name, value in whole.items():
        parts = 0.0
        for rows in (slice(0, 1), slice(1, 4), slice(4, 6)):
            fields = {k: v[rows] for k, v in vars(found).items() if isinstance(v, Tensor) and k != "anchors"}
            part = SimpleNamespace(**fields, anchors=found.anchors, refine=answer)
            share = int(count_units(part_of(truth, rows))) / units
            parts += share * rule(part, part_of(truth, rows), u[rows]).terms[name]
        close(parts, value)


@pytest.mark.system("faster-r-cnn", "joint")
def test_no_objects_at_all() -> None:
    """Background alone is learned; the box term is 0, not a division by it. Not even a proposal is fine, too."""
    found, u = make_regions(2), torch.rand(2, 2, generator=torch.Generator().manual_seed(3))
    for m in (0, 2):
        empty = Boxes(torch.zeros(2, m, 4), torch.full((2, m), -1), torch.zeros(2, m))
        terms = TwoStageLoss()(found, empty, u).terms
        assert terms["box"] == 0
        assert terms["classes"] > 0
        found_nothing = SimpleNamespace(**vars(found) | {"real": torch.zeros_like(found.real)})
        assert TwoStageLoss()(found_nothing, empty, u).total().isfinite()


def test_the_second_stage_sees_the_chosen_regions_only() -> None:
    _, truth = make_rectangles(4)
    found, u = make_regions(4), torch.rand(4, 1, generator=torch.Generator().manual_seed(3))
    seen: list[int] = []
    found.refine = lambda boxes, owner: (seen.append(len(boxes)), answer(boxes, owner))[1]
    RegionLoss(regions=7)(found, truth, u)
    assert seen == [28]
