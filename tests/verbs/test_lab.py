from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import descend
from descend import cli, labs
from descend.errors import Mistake
from descend.verbs.evidence import format_lab
from descend.verbs.flags import read_seconds
from descend.verbs.table import format_table
from proofs.every_lab import try_lab
from tests.close import close


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the seeds found is kept in runs/labs of the folder that one is in."""
    monkeypatch.chdir(tmp_path)


def test_the_labs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lab"]) == 0
    out = capsys.readouterr().out
    assert all(f"{name}\n" in out for name in labs.names())
    assert cli.main(["lab", "--json"]) == 0
    assert [entry["lab"] for entry in json.loads(capsys.readouterr().out)] == labs.names()


def test_a_lab_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "scale.html"
    assert cli.main(["lab", "attention-scale", "--budget", "1s", "--out", str(page)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Claim: With entries of mean 0")
    assert "\n1024 " in out
    assert "queries: " in out
    assert "\nVerdict: supported\n" in out
    html = page.read_text(encoding="utf-8")
    assert 'class="state supported"' in html
    assert "<svg" in html
    assert "entropy of equal weights" in html


def test_json_is_what_python_returns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = tmp_path / "scale.png"
    cli.main(["lab", "attention-scale", "--budget", "0.6", "--seed", "3", "--seeds", "2", "--json", "--out", str(plot)])
    printed = json.loads(capsys.readouterr().out)
    again = json.loads(json.dumps(descend.lab("attention-scale", seed=3, budget=0.6, seeds=2)))
    for told in (printed, again):
        assert min(told.pop("seconds")) > 0
        assert told.pop("spent") > 0
    assert printed == again
    assert printed["seeds"] == [3, 4]
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_several_seeds_are_judged_together_and_kept(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["lab", "attention-scale", "--budget", "1", "--seeds", "3"]
    assert cli.main(asked) == 0
    out, err = capsys.readouterr()
    assert err.startswith("forecast: 3 of 3 seeds to measure, about 1 s, of a budget of 1 s\n")
    assert " ± " in out
    assert all(f"\nseed {seed}, " in out for seed in range(3))
    assert "\nbudget 1 s in all, 0.333 s per seed, took " in out
    assert "3 of 3 seeds" in out
    assert out.endswith("\nVerdict: supported\n")
    assert cli.main(asked) == 0
    again, err = capsys.readouterr()
    assert err.startswith("forecast: 0 of 3 seeds to measure, about 0 s")
    assert "took 0.0 s of one core; 3 measured before" in again
    assert cli.main([*asked[:-1], "0"]) == 2


def test_a_budget_is_never_exceeded(capsys: pytest.CaptureFixture[str]) -> None:
    """l1-restoration trains three times at least; asked for one second it used many."""
    began = time.process_time()
    assert cli.main(["lab", "l1-restoration", "--budget", "0.2s", "--out", "page.html", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["spent"] <= 0.2
    assert time.process_time() - began < 4, "with imports"
    assert (found["verdict"], found["missing"], found["needs"]) == ("open", [1, 2], 5.0)
    assert "needs about 5 s a seed" in format_lab(found)
    assert Path("page.html").read_text(encoding="utf-8").count("not measured") == len(found["predictions"])
    assert cli.main(["lab", "l1-restoration", "--budget", "0.1s", "--out", "plot.png"]) == 2


@pytest.mark.parametrize(
    ("text", "value"), [("10", 10.0), ("10s", 10.0), ("2m", 120.0), ("1.5h", 5400.0), (".5s", 0.5)]
)
def test_budgets(text: str, value: float) -> None:
    close(read_seconds(text), value)


@pytest.mark.parametrize("text", ["", "fast", "-1s", "0", "10y", "1e9", "nan"])
def test_wrong_budgets(text: str) -> None:
    with pytest.raises(Mistake, match="give a time such as 90s"):
        read_seconds(text)


def test_the_ledger_of_all_labs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labs, "names", lambda: ["position-residuals", "wl-and-gin"])
    page = tmp_path / "labs.html"
    asked = ["lab", "--all", "--seeds", "1", "--out", str(page)]
    assert cli.main([*asked, "--budget", "1.4s"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("position-residuals: open (")
    assert "forecast: 1 measurements of 1 labs" in err
    assert "not measured, the budget is too small: wl-and-gin" in err
    assert cli.main(asked) == 0
    out, err = capsys.readouterr()
    assert [line.split(" (")[0] for line in out.splitlines()] == ["position-residuals: open", "wl-and-gin: open"]
    assert "forecast: 1 measurements of 2 labs" in err, "the other is kept"
    html = page.read_text(encoding="utf-8")
    said = (
        "as printed",
        "as tested",
        "retuned after a first look",
        "DLN-C.35",
        "torch",
        "data:image/png",
        "GIN sep",
    )
    assert all(text in html for text in said)
    assert cli.main([*asked, "--json"]) == 0
    assert [found["lab"] for found in json.loads(capsys.readouterr().out)] == labs.names()


@pytest.mark.parametrize(
    "wrong", [["attention-scale", "--all"], ["--all", "--out", "a.png"], ["--all", "--workers", "0"], ["no-such-lab"]]
)
def test_wrong_flags(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lab", *wrong]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("descend: ")


def test_where_to_keep_is_checked_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs").write_text("in the way", encoding="utf-8")
    assert cli.main(["lab", "wl-and-gin"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "runs/labs" in err


def test_where_to_write_is_checked_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lab", "attention-scale", "--out", "scale.pdf"]) == 2
    assert cli.main(["lab", "attention-scale", "--out", str(tmp_path / "no" / "scale.png")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "must end in .png, .svg or .html" in err
    assert "there is no folder" in err


def test_table_aligns() -> None:
    text = format_table(["name", "mean gradient", "n"], [["a", 0.5, 10], ["long name", 12.25, 3]])
    assert text.splitlines() == [
        "               mean",
        "name       gradient   n",
        "a               0.5  10",
        "long name     12.25   3",
    ]
    assert format_table(["x"], [[None], [1.0]]).splitlines() == ["x", "", "1"]


@pytest.mark.parametrize("name", ["early-decay", "attention-lookup", "position-residuals"])
def test_the_smallest_budget_is_enough_to_end(name: str, tmp_path: Path) -> None:
    """All of them: python -m proofs.every_lab."""
    assert [(found.code, found.fault) for found in try_lab(name, tmp_path)] == [(0, "")] * 3
