"""The test data judge a trained run once; another checkpoint adds a line that says which one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import descend
from descend import recipes
from descend.kinds.recipe import Recipe
from descend.report.history import read_history
from descend.verbs.start import tell_about


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "taxi.csv"
    rows = [f"{k % 17},{k % 5},{2 * (k % 17) + k % 5 + (k % 3) / 10}" for k in range(120)]
    path.write_text("\n".join(["distance,riders,fare", *rows]) + "\n")
    return path


def shorten(table: Path) -> Recipe:
    recipe = recipes.get("mlp-csv")
    loop = replace(recipe.loop, steps=6, eval_every=3, save_every=3)
    return replace(recipe, data=replace(recipe.data, path=str(table), target="fare"), loop=loop)


def read_tests(run: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line.get("event") == "test"]


def test_once_at_the_end_and_once_for_another_checkpoint(table: Path, tmp_path: Path) -> None:
    run, result = descend.train(shorten(table), out=tmp_path / "run", quiet=True)
    (line,) = read_tests(run.folder)
    assert set(line) == {"step", "event", "checkpoint", "scores"}
    assert (line["step"], line["checkpoint"]) == (result.best_step, f"step-{result.best_step:06d}")
    assert set(line["scores"]) == {"loss", "mae", "rmse", "r2"}
    assert descend.evaluate(run.folder)["test"] == line["scores"]
    assert descend.evaluate(run.folder)["test"] == line["scores"]
    assert read_tests(run.folder) == [line]
    other = 9 - result.best_step  # of steps 3 and 6
    descend.evaluate(run.folder, checkpoint=other)
    assert [found["step"] for found in read_tests(run.folder)] == [result.best_step, other]
    assert read_history(run.folder).state == "finished"
    assert descend.runs(run.folder)[0]["test"] == line["scores"]
    descend.resume(run.folder, quiet=True)  # has ended: nothing is trained, nothing is scored again
    assert len(read_tests(run.folder)) == 2


def test_the_page_is_about_the_users_own_table(table: Path, tmp_path: Path) -> None:
    run, _ = descend.train(shorten(table), out=tmp_path / "run", quiet=True)
    saved = run.recipe
    assert saved["about"] == f"MLP on {table}, predicting fare (a number)"
    assert (saved["model"]["inputs"], saved["model"]["outputs"]) == (2, 1)
    page = (run.folder / "report.html").read_text()
    assert "house prices" not in page
    assert "784" not in page.partition("Configuration")[2]
    assert "MAE (fare)" in page


def test_a_recipes_own_words_hold_for_its_own_data() -> None:
    moons = recipes.get("mlp-moons")
    assert tell_about("mlp-moons", moons, moons.build()) == moons.about
    other = replace(moons, data=replace(moons.data, embedded="wine"))
    assert tell_about("mlp-moons", other, other.build()).startswith("MLP on embedded table wine, predicting ")
