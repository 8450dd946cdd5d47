"""Labs of the arm: they measure what they say on a tiny budget, and their verdicts follow from the numbers."""

from __future__ import annotations

from descend.labs import bimodal_demonstrations, control_latency
from descend.labs._evidence import judge_seed


def test_latency_is_measured_for_every_stage() -> None:
    numbers = control_latency.measure(0, 0.0)
    assert sum(numbers["stages"].values()) == numbers["total"]
    assert numbers["plans"] >= 2
    assert judge_seed(control_latency, numbers | {"total": 57.0}) == "supported"
    assert judge_seed(control_latency, numbers | {"total": 57.1}) == "refuted"
    assert control_latency.figure(numbers).axes


def test_three_learners_are_compared_on_the_same_demonstrations() -> None:
    numbers = bimodal_demonstrations.measure(0, 0.5)
    for learner in bimodal_demonstrations.LEARNERS:
        assert 0 <= numbers[f"in_mode_{learner}"] <= 1
        assert len(numbers["passed"][learner]) == bimodal_demonstrations.JUDGED
    good = {"in_mode_diffusion": 0.97, "behind_diffusion": 0.5, "in_mode_squared": 0.01}
    assert judge_seed(bimodal_demonstrations, good) == "supported"
    assert judge_seed(bimodal_demonstrations, good | {"behind_diffusion": 0.7}) == "refuted"
    assert judge_seed(bimodal_demonstrations, good | {"in_mode_squared": 0.98}) == "refuted"
    assert bimodal_demonstrations.figure(numbers).axes
