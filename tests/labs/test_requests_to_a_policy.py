"""The lab of requests that drive a learned policy: what is asked for, and the verdict."""

from __future__ import annotations

from descend.data.control.arm_world import PAINTS, ArmWorld
from descend.data.control.instructions import understand
from descend.labs import requests_to_a_policy as lab
from descend.labs._evidence import judge_seed


def test_a_request_names_the_things_that_are_meant() -> None:
    scene = ArmWorld(2, 2).reset([3])
    asked = understand(lab.request(scene, 1, 0))
    assert asked == (int(scene.paint[0, 1]), int(scene.bin_paint[0, 0]))
    assert all(word in PAINTS for word in (PAINTS[asked.cube], PAINTS[asked.bin]))


def test_a_short_run_says_nothing() -> None:
    numbers = lab.measure(0, 0.1)
    assert numbers["judged"] == 1
    assert judge_seed(lab, numbers) == "open"
    assert lab.figure(numbers).axes


def test_the_verdict_reads_the_numbers() -> None:
    good = {"steps": 12000, "judged": 30, "named": 0.95, "placed": 0.9, "swapped": 0.9}
    assert judge_seed(lab, good) == "supported"
    for name in ("named", "swapped"):
        assert judge_seed(lab, {**good, name: 0.85}) == "refuted"
