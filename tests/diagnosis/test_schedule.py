"""A run that was interrupted is to be resumed, whatever else it looks like; a warm-up must end before the run does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from descend import recipes
from descend.diagnosis.course import read_course
from descend.diagnosis.examine import order_findings
from descend.diagnosis.schedule import detect_interruption, detect_long_average, detect_long_warmup
from descend.diagnosis.signs import Better, Signs, flatten
from descend.kinds.length import with_steps
from descend.kinds.saved import to_json

FLAT = tuple((i, 2.3) for i in range(1, 21))
BETTER = Better("asking the 5 nearest training examples", "accuracy", theirs=0.9, ours=0.1)
WEAK = Signs(
    steps=400, train=FLAT, valid=FLAT[::4], chance=2.3, fitted=2.2, better=BETTER, values={"model.width": 8}, done=20
)


def test_an_interrupted_run_is_to_be_resumed_not_widened() -> None:
    found = order_findings(WEAK, None)
    assert [finding.name for finding in found.findings] == ["interrupted"]
    assert found.follows == {"underfit": "interrupted"}
    (finding,) = found.findings
    assert "step 20 of 400 (5%)" in finding.evidence
    assert "descend resume" in finding.change
    assert "width" not in finding.change
    whole = order_findings(replace(WEAK, done=400, ended="finished"), None)
    assert [finding.name for finding in whole.findings] == ["underfit"]
    assert "--model.width" in whole.findings[0].change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ended": "SIGINT"}, "SIGINT"),
        ({"ended": "budget"}, "the time budget was used up"),
        ({}, "the log breaks off"),
    ],
)
def test_how_it_was_interrupted(change: dict[str, str], said: str) -> None:
    found = detect_interruption(replace(WEAK, **change))  # type: ignore[arg-type]
    assert found
    assert found.evidence.endswith(said)
    assert ("descend resume RUN --budget" in found.change) == (change.get("ended") == "budget")


@pytest.mark.parametrize("change", [{"ended": "patience"}, {"ended": "failed"}, {"running": True}, {"done": 400}])
def test_a_run_that_need_not_be_resumed(change: dict[str, object]) -> None:
    assert detect_interruption(replace(WEAK, **change)) is None  # type: ignore[arg-type]


def test_a_warm_up_that_never_ends() -> None:
    signs = Signs(steps=200, values={"schedule.warmup": 500, "optim.lr": 0.001})
    found = detect_long_warmup(signs)
    assert found
    assert "takes 500 steps, the run has 200: the learning rate ends at 0.0004 of 0.001" in found.evidence
    assert found.change == "--schedule.warmup 20, or --steps 5000"
    assert detect_long_warmup(replace(signs, values={})) is None


@pytest.mark.parametrize(("warmup", "severity"), [(66, ""), (67, "warning"), (199, "warning"), (200, "fault")])
def test_a_warm_up_of_more_than_a_third_of_the_run(warmup: int, severity: str) -> None:
    found = detect_long_warmup(Signs(steps=200, values={"schedule.warmup": warmup, "optim.lr": 0.001}))
    assert (found.severity if found else "") == severity
    assert not found or ("ends at" in found.evidence) == (severity == "fault")


@pytest.mark.parametrize(("steps", "ema", "change"), [(100, 0.99, "--ema 0.9, or --steps 1000"), (5, 0.9, "--ema 0")])
def test_an_average_over_more_steps_than_the_run_has(steps: int, ema: float, change: str) -> None:
    found = detect_long_average(Signs(steps=steps, values={"ema": ema}))
    assert found
    assert found.change.startswith(change)
    assert f"the run has {steps}" in found.evidence
    assert detect_long_average(Signs(steps=2 * round(1 / (1 - ema)), values={"ema": ema})) is None


@pytest.mark.parametrize("values", [{}, {"ema": 0.0}])
def test_no_average_is_not_too_long(values: dict[str, float]) -> None:
    assert detect_long_average(Signs(steps=1, values=values)) is None


def test_no_recipe_has_a_warm_up_or_average_that_is_too_long_for_it_or_for_a_tenth_of_it() -> None:
    for name in recipes.names():
        whole = recipes.get(name)
        tenth = with_steps(whole, max(1, whole.loop.steps // 10))
        for recipe in (whole, tenth):
            signs = Signs(steps=recipe.loop.steps, values=flatten(to_json(recipe)))
            assert detect_long_warmup(signs) is None, name
            assert detect_long_average(signs) is None, name


def test_the_end_is_read_from_the_lines() -> None:
    recipe = {"values": {"loop": {"steps": 9}}}
    lines = [{"step": 3, "loss": 1.0}, {"step": 3, "event": "SIGTERM"}]
    stopped = read_course(recipe, lines)
    assert (stopped.done, stopped.ended, stopped.unfinished) == (3, "SIGTERM", True)
    resumed = read_course(recipe, [*lines, {"step": 3, "event": "resumed"}, {"step": 5, "loss": 1.0}])
    assert (resumed.done, resumed.ended, resumed.unfinished) == (5, "", True)
    ended = read_course(recipe, [*lines, {"step": 9, "loss": 1.0}, {"step": 9, "event": "finished"}])
    assert (ended.done, ended.ended, ended.unfinished) == (9, "finished", False)
