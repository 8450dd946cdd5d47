"""doctor as a user calls it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import descend
from descend.cli import main
from tests.diagnosis.patients import LOOP, WIDE, Sickness, digits, trained


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A run whose units are dead, and one that is well, both short."""
    folder = tmp_path_factory.mktemp("runs")
    loop = replace(LOOP, steps=40)
    sick = digits(WIDE, loop=loop, sickness=Sickness(bias=-8.0))
    return {
        "sick": str(trained("mlp-digits", sick, folder / "sick").folder),
        "well": str(trained("mlp-digits", digits(WIDE, lr=5e-3, loop=loop), folder / "well").folder),
    }


def test_findings_in_the_terminal(runs: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", runs["sick"]]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0].split() == ["finding", "severity"]
    assert lines[1].split() == ["dead-relu", "fault"]
    assert "% of 64 after layers.1" in " ".join(out.split())  # lines are folded
    assert "∂a/∂z = 0" in out
    assert "--model.activations tanh" in out
    assert "explains  vanishing-gradient" in out
    assert max(map(len, lines)) <= 100


def test_a_healthy_run(runs: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", runs["well"]]) == 0
    assert "no problem found (40 training losses, 4 evaluations, 3 layers)" in capsys.readouterr().out


def test_json(runs: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", runs["sick"], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["healthy"] is False
    assert set(found["findings"][0]) == {"name", "severity", "evidence", "equation", "change"}
    assert found["follows"]["vanishing-gradient"] == "dead-relu"
    assert [layer["name"] for layer in found["layers"]] == [f"model.layers.{i}" for i in range(3)]
    assert max(units["dead"] for units in found["units"]) > 0.9


def test_html(runs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", runs["sick"], "--html", str(tmp_path / "page.html")]) == 0
    assert "written" in capsys.readouterr().out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "dead-relu" in page
    assert page.count("<html") == 1


def test_the_function(runs: dict[str, str]) -> None:
    assert [finding.name for finding in descend.doctor(runs["sick"]).findings] == ["dead-relu"]
    assert descend.doctor(runs["well"]).findings == ()


def test_mistakes(runs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for args, said in (
        ([str(tmp_path / "none")], "is not a run folder"),
        ([runs["sick"], "--html", str(tmp_path / "no" / "page.html")], "there is no folder"),
    ):
        assert main(["doctor", *args]) == 2
        err = capsys.readouterr().err
        assert said in err
        assert err.count("\n") == 1
