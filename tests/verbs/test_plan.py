"""A plan that forecasts a long run says what to change, with the time that is left."""

from __future__ import annotations

import re

import pytest

import descend
from descend import cli, recipes
from descend.engine.loop import Loop
from descend.verbs.advice import advise, format_duration
from descend.verbs.measure import Measured


def measured(steps: int, step: float) -> Measured:
    return Measured(Loop(steps=steps, eval_every=100), step, 1.0, 2.0, 10**9, 2, "cpu", {"parameters": 1})


def test_a_day_is_cut_to_an_hour() -> None:
    day = measured(86_400, 1.0)
    first, second, *others = advise(recipes.get("gpt2-pydoc"), day)
    steps = int(first.partition(" of 86,400")[0].rpartition(" ")[2].replace(",", ""))
    assert first.startswith("--budget 1h: ")
    assert second == f"--steps {steps}: 60 min"
    assert day.seconds(steps) <= 3600 < day.seconds(steps + 60)
    assert others == [f"--model.width 96 instead of 192: about {format_duration(day.seconds() / 4)}"]
    assert any("--data.size 32 instead of 64" in line for line in advise(recipes.get("cnn-images"), day))


def test_a_short_run_is_left_as_it_is() -> None:
    assert advise(recipes.get("gpt2-pydoc"), measured(100, 1.0)) == []


def test_the_plan_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert descend.plan("mlp-wine")["advice"] == []
    assert cli.main(["plan", "mlp-wine", "--steps", "1000000000", "--threads", "1"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^device +cpu$", out, re.MULTILINE)
    assert re.search(r"^shorter +--budget 1h: as many steps as fit, [\d,]+ of 1,000,000,000", out, re.MULTILINE)
