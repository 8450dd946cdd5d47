"""What the labs on boxes recorded, on three seeds."""

from __future__ import annotations

import pytest

from tests.proofs.test_recorded_labs import read_verdict

RECORDED = [
    pytest.param(
        "detection-walkthroughs", marks=pytest.mark.system("detection-walkthroughs", "yolo-trained", "detr-trained")
    ),
    pytest.param("yolo-evolution", marks=pytest.mark.system("yolo-evolution", "one-set", "anchors-and-small-objects")),
    pytest.param("detector-transfer", marks=pytest.mark.system("detection-training-loop", "fine-tuning")),
]


@pytest.mark.parametrize("lab", RECORDED)
def test_the_recorded_verdict_supports_the_claim(lab: str) -> None:
    assert read_verdict(lab) == "supported"
