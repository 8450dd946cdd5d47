"""The lab on motion in tracking: its numbers, and a verdict that can fall either way."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from descend.labs import tracking_motion
from descend.labs._evidence import judge_seed
from descend.labs.tracking_motion import MISSED, figure, measure

verdict = partial(judge_seed, tracking_motion)

GOOD: dict[str, Any] = {
    "videos": 5,
    "missed": list(MISSED),
    "velocity_idf1": [0.98, 0.9, 0.8],
    "still_idf1": [0.97, 0.85, 0.7],
    "velocity_mota": [0.97, 0.9, 0.8],
    "still_mota": [0.97, 0.9, 0.8],
}


@pytest.mark.system("multi-object-tracking", "noisy-video")
def test_measured() -> None:
    numbers = measure(0, 1.0)
    assert numbers["videos"] == 1
    assert numbers["velocity_mota"][0] >= 0.93
    assert numbers["velocity_idf1"][0] >= 0.95
    assert numbers["velocity_idf1"][2] < numbers["velocity_idf1"][0]
    assert verdict(numbers) == "open"
    assert len(figure(numbers).axes) == 2


def test_verdicts() -> None:
    assert verdict(GOOD) == "supported"
    assert verdict(GOOD | {"still_idf1": [0.97, 0.95, 0.7]}) == "refuted"
    assert verdict(GOOD | {"velocity_mota": [0.9, 0.9, 0.8]}) == "refuted"
    assert verdict(GOOD | {"videos": 2}) == "open"
