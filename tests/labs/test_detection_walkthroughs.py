"""The walkthroughs: every number by hand, five images with their boxes, and a verdict that reads the numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import detection_walkthroughs
from descend.labs._evidence import judge_seed
from descend.labs.detection_walkthroughs import (
    ARMS,
    ENOUGH,
    draw_images,
    figure,
    follow_detr,
    follow_yolo,
    make_yolo,
    measure,
)

verdict = partial(judge_seed, detection_walkthroughs)

SLUG = "detection-walkthroughs"


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "yolo")
def test_the_yolo_by_hand() -> None:
    """MF-28.1.3 to 28.1.5: the box of cell [6, 6]; 27.45 and 137.33 where the book has 2.8 and 14.06."""
    found = follow_yolo()
    right = {"x": 208.799334, "y": 209.5946879, "w": 26.37954033, "h": 29.15390081, "box": 27.45320936,
             "objectness": 0.01, "class": 0.05, "total": 137.3260468}  # fmt: skip
    assert found == pytest.approx(right, rel=1e-8)


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "detr")
def test_the_detr_by_hand() -> None:
    """MF-28.2.5 to 28.2.7: cost 0.2, box part 1, class part 0.0179, total 1.0179; the box is centre and sides."""
    found = follow_detr()
    right = {"cost": 0.2, "box": 1.0, "class": 0.01785148411, "total": 1.017851484,
             "x0": 160.0, "y0": 120.0, "x1": 352.0, "y1": 264.0}  # fmt: skip
    assert found == pytest.approx(right, rel=1e-6)


def test_five_images() -> None:
    """Every object is brighter than the noise inside its box, in the channel of its class, and lies in the image."""
    x, truth = draw_images(0)
    assert (truth.classes >= 0).sum(dim=1).tolist() == [1, 2, 1, 2, 1]
    for image, place in (truth.classes >= 0).nonzero().tolist():
        kind = int(truth.classes[image, place])
        x0, y0, x1, y1 = truth.boxes[image, place].int().tolist()
        assert 0 <= x0 < x1 <= 128
        assert 0 <= y0 < y1 <= 128
        assert (y1 - y0 > x1 - x0) == (kind == 0)
        assert x[image, 2 * kind, y0:y1, x0:x1].min() >= 0.6
    head = make_yolo(truth).head
    assert head.out_channels == 3 * (5 + 2)


def test_a_short_run() -> None:
    numbers = measure(seed=0, budget=0.2)
    assert numbers["arm"] == list(ARMS)
    assert all(0 <= score <= 1 for score in numbers["map50"])
    assert verdict(numbers) == "open"
    assert len(figure(numbers).axes) == 1
    torch.manual_seed(5)
    assert measure(seed=0, budget=0.2) == numbers  # the seed alone decides


def test_the_verdict_reads_the_numbers() -> None:
    def made(*scores: float, **changes: Any) -> dict[str, Any]:
        return {"yolo": follow_yolo(), "detr": follow_detr(), "arm": list(ARMS), "map50": list(scores),
                "steps": ENOUGH, **changes}  # fmt: skip

    assert verdict(made(0.5, 0.99, 0.97)) == "supported"
    assert verdict(made(1.0, 0.9, 1.0)) == "refuted"
    assert verdict(made(1.0, 1.0, 0.9)) == "refuted"
    assert verdict(made(1.0, 1.0, 1.0, yolo={"total": 14.06})) == "refuted"
    assert verdict(made(1.0, 1.0, 1.0, steps=ENOUGH - 1)) == "open"
