from __future__ import annotations

import json
from pathlib import Path

import pytest

import descend
from descend import cli, labs
from descend.errors import Mistake
from descend.verbs.flags import read_seconds
from descend.verbs.table import format_table
from proofs.every_lab import try_lab
from tests.close import close


def test_the_labs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lab"]) == 0
    out = capsys.readouterr().out
    assert all(f"{name}\n" in out for name in labs.names())
    assert cli.main(["lab", "--json"]) == 0
    assert [entry["lab"] for entry in json.loads(capsys.readouterr().out)] == labs.names()


def test_a_lab_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "scale.html"
    assert cli.main(["lab", "attention-scale", "--budget", "0.05s", "--out", str(page)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Claim: With entries of mean 0")
    assert "\n1024 " in out
    assert "queries: 100\n" in out
    assert "\nVerdict: supported\n" in out
    assert max(map(len, out.splitlines()[:-1])) <= 80
    html = page.read_text(encoding="utf-8")
    assert 'class="state supported"' in html
    assert "<svg" in html
    assert "entropy of equal weights" in html


def test_json_is_what_python_returns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = tmp_path / "scale.png"
    cli.main(["lab", "attention-scale", "--budget", "0.2", "--seed", "3", "--json", "--out", str(plot)])
    printed = json.loads(capsys.readouterr().out)
    again = json.loads(json.dumps(descend.lab("attention-scale", seed=3, budget=0.2)))
    assert printed.pop("seconds") > 0 < again.pop("seconds")
    assert printed == again
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_several_seeds_are_judged_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lab", "attention-scale", "--budget", "0.1", "--seeds", "3"]) == 0
    out = capsys.readouterr().out
    assert " ± " in out
    assert all(f"\nseed {seed}, " in out for seed in range(3))
    assert "\nbudget 0.1 s per seed, took " in out
    assert "\nVerdict: " in out
    assert cli.main(["lab", "attention-scale", "--seeds", "0"]) == 2


@pytest.mark.parametrize(
    ("text", "value"), [("10", 10.0), ("10s", 10.0), ("2m", 120.0), ("1.5h", 5400.0), (".5s", 0.5)]
)
def test_budgets(text: str, value: float) -> None:
    close(read_seconds(text), value)


@pytest.mark.parametrize("text", ["", "fast", "-1s", "0", "10y", "1e9", "nan"])
def test_wrong_budgets(text: str) -> None:
    with pytest.raises(Mistake, match="give a time such as 90s"):
        read_seconds(text)


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
    assert [(found.code, found.fault) for found in try_lab(name, tmp_path)] == [(0, ""), (0, "")]
