"""The scores of a run: validation and test side by side, in words and with the unit of what is predicted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from descend.report import write_report
from descend.report.history import read_history
from descend.report.scores import draw_scores
from tests.report.synthetic import make_run
from tests.report.test_page import read_page


def add_lines(run: Path, *lines: dict[str, Any]) -> None:
    with (run / "metrics.jsonl").open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def as_test(step: int, **scores: float) -> dict[str, Any]:
    return {"step": step, "event": "test", "checkpoint": f"step-{step:06d}", "scores": scores}


def test_the_test_score_stands_beside_validation(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run)
    add_lines(run, as_test(150, loss=2.5, accuracy=0.125))
    history = read_history(run)
    assert history.state == "finished"
    assert (history.step, history.seconds) == (200, 20.0)
    assert history.tested == {"loss": 2.5, "accuracy": 0.125}
    html, text = read_page(write_report(run, []))
    assert "score validation test" in text
    assert "Accuracy 0.1500 0.1250 share of the predictions that are correct" in text
    assert "0.1250 test accuracy" in text  # in the headline too
    assert "checkpoint of step 150, chosen by the lowest validation loss. The test data had no part" in text
    assert ">Scores</h" in html


def test_another_checkpoint_has_a_column_of_its_own(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run)
    add_lines(run, as_test(150, loss=2.5, accuracy=0.125), as_test(200, loss=2.25, accuracy=0.5))
    assert read_history(run).tested["accuracy"] == 0.125  # of the best, though another one came later
    text = read_page(write_report(run, []))[1]
    assert "score validation test test, step 200" in text
    assert "Accuracy 0.1500 0.1250 0.5000" in text


def test_a_run_without_test_data_says_nothing_of_them(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    assert "test" not in str(draw_scores(read_history(tmp_path / "run")))


def test_errors_are_in_the_unit_of_the_target(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run)
    recipe = json.loads((run / "recipe.json").read_text())
    recipe["facts"]["target"] = "fare_usd"
    (run / "recipe.json").write_text(json.dumps(recipe))
    add_lines(run, {"step": 210, "time": 21.0, "valid": {"loss": 0.02, "mae": 0.7, "rmse": 1234.5, "r2": 0.98}})
    text = read_page(write_report(run, []))[1]
    assert "MAE (fare_usd) 0.7000 mean absolute error" in text
    assert "RMSE (fare_usd) 1,234" in text
    assert "R² 0.9800 share of the variance explained" in text
    assert "Loss 0.0200 mean squared error of the standardized target" in text
