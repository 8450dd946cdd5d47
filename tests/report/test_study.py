"""The page of a study and the learning-rate finder, from made-up numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from descend.engine.lr_range import curve, rate
from descend.report.study import write_study
from descend.report.sweep import draw_figure, draw_spark, make_sweep_page


def found() -> dict[str, Any]:
    trials = [
        {
            "number": i,
            "state": "pruned" if i == 3 else "failed" if i == 4 else "complete",
            "values": {"optim.lr": 10.0**-i, "model.name": "<b>" if i % 2 else "a"},
            "score": None if i == 4 else 0.5 + 0.1 * i,
            "scores": [[10, 0.4], [20, 0.5 + 0.1 * i]][: 1 if i == 3 else 2],
            "run": f"trials/{i:03d}",
            "seconds": 2.0,
            "step": 20,
            **({"fault": "loss <nan>"} if i == 4 else {}),
        }
        for i in range(5)
    ]
    return {
        "study": "x",
        "recipe": "lenet<digits>",
        "state": "finished",
        "watch": "max accuracy",
        "sampler": "gp",
        "pruner": "median",
        "seed": 0,
        "search": [
            {"name": "optim.lr", "low": 1e-4, "high": 1.0, "log": True},
            {"name": "model.name", "choices": ["a", "<b>"]},
        ],
        "wanted": 5,
        "best": trials[2],
        "command": "descend train lenet --model.name '<b>'",
        "importance": {"optim.lr": 0.8, "model.name": 0.2},
        "trials": trials,
    }


def test_the_page_holds_everything_and_needs_nothing(tmp_path: Path) -> None:
    text = write_study(tmp_path, found()).read_text()
    for said in ("0.700", "descend train lenet --model.name", "History", "Importance", "80%", "Curves", "trials/002"):
        assert said in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "<b>&" not in text
    assert "lenet&lt;digits&gt;" in text
    assert "loss &lt;nan&gt;" in text
    assert "<nan>" not in text
    assert text.count("<svg") >= 6
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]


def test_a_page_without_a_complete_trial(tmp_path: Path) -> None:
    empty = {**found(), "trials": [], "best": None, "command": "", "importance": {}, "state": "budget"}
    text = write_study(tmp_path, empty).read_text()
    assert "No trial is complete yet" in text
    assert "interrupted" in text


def test_the_learning_rate_finder(tmp_path: Path) -> None:
    rates = [rate(t, 99, 1e-6, 10.0) for t in range(100)]
    losses = [3.0 - 2.0 / (1 + (1e-3 / r) ** 2) + (0.0 if r < 0.1 else 50 * (r / 0.1 - 1)) for r in rates]
    made = curve(rates, losses, 100, "diverged")
    line, arrow, ends = draw_spark(made).splitlines()
    assert len(line) <= 64
    assert line[arrow.index("^")] in "▃▄▅▆▇"
    assert line[0] in "▄▅▆▇█"
    assert "▁" in line
    assert ends.startswith("1e-06")
    assert draw_spark(made, unicode=False).isascii()
    page = make_sweep_page("<x>", made)
    assert f"{made.suggestion:.3g}" in page
    assert "&lt;x&gt;" in page
    draw_figure("x", made).savefig(tmp_path / "x.svg")
    assert (tmp_path / "x.svg").stat().st_size > 5000
