"""A run says in which precision it is trained, and resumes in it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from descend.verbs import start
from descend.verbs.start import run_recipe
from tests.engine.small import small


@pytest.mark.parametrize(("asked", "found"), [("auto", "float32"), ("bfloat16", "bfloat16")])
def test_the_choice_is_in_the_run(asked: str, found: str, tmp_path: Path) -> None:
    run, _ = run_recipe("small", small(tmp_path, steps=2, precision=asked), tmp_path / "run", quiet=True)
    assert run.recipe["environment"]["precision"] == found
    assert run.recipe["values"]["loop"]["precision"] == asked


def test_it_is_chosen_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the run says is what it does."""
    monkeypatch.setattr(start, "choose_precision", lambda *_: torch.bfloat16)
    run, _ = run_recipe("small", small(tmp_path, steps=2), tmp_path / "run", quiet=True)
    half, _ = run_recipe("small", small(tmp_path, steps=2, precision="bfloat16"), tmp_path / "half", quiet=True)
    assert run.recipe["environment"]["precision"] == "bfloat16"
    assert [line["loss"] for line in run.lines() if "loss" in line] == [
        line["loss"] for line in half.lines() if "loss" in line
    ]
