"""descend reproduce: what was recorded, and what comes out now, side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from descend import recipes
from descend.catalog.figures import DATA, figures, find_figures
from descend.cli import main
from descend.errors import Mistake
from descend.verbs import reproduce as verb
from descend.verbs.asked import read_asked
from descend.verbs.reproduce import Outcome, compare, reproduce
from descend.verbs.train import TrainFlags
from proofs.__main__ import HERE, publish


def test_the_figures_are_those_that_were_measured() -> None:
    results = json.loads((HERE / "RESULTS.json").read_text(encoding="utf-8"))
    assert [
        vars(one) | {k: list(getattr(one, k)) for k in ("seeds", "values", "seconds")} for one in figures()
    ] == publish(results)
    assert len(figures()) >= 25


def test_every_figure_can_be_trained_again() -> None:
    for one in figures():
        asked = read_asked(TrainFlags, recipes.get(one.recipe), one.flags.split(), "descend train")
        assert asked.recipe is not None
        assert one.needs in ("", *DATA)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str], Path]]:
    calls = []

    def measure(recipe: str, words: list[str], folder: Path) -> Outcome:
        calls.append((recipe, words, folder))
        return Outcome({"test": {"accuracy": 0.95}}, 3.0, folder)

    monkeypatch.setattr(verb, "measure_run", measure)
    return calls


def test_the_recorded_seeds_are_trained(trained: list[Any], tmp_path: Path) -> None:
    (found,) = reproduce("mlp-moons", folder=tmp_path)
    (figure,) = find_figures("mlp-moons")
    assert [words[:2] for _, words, _ in trained] == [["--seed", str(seed)] for seed in figure.seeds]
    assert found["recorded"] == figure.mean
    assert found["in band"] == (figure.band[0] <= 0.95 <= figure.band[1])
    assert found["mean"] == pytest.approx(0.95)
    assert len(reproduce("mlp-moons", seeds=[0], folder=tmp_path)[0]["values"]) == 1


def test_in_and_out_of_the_band(tmp_path: Path) -> None:
    (figure,) = find_figures("mlp-moons")
    for value, inside in ((figure.mean, True), (figure.band[0] - 1e-6, False), (figure.band[1] - 1e-9, True)):
        found = compare(figure, [0], [Outcome({figure.split: {figure.score: value}}, 1.0, tmp_path)])
        assert found["in band"] is inside


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list"]) == 0
    said = capsys.readouterr().out
    assert "gcn-cora" in said
    assert "Kipf and Welling" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [(["mlp-moon"], "mlp-moons"), (["gcn-cora"], "--data"), (["mlp-moons", "--seeds", "99"], "measured on 0, 1, 2")],
)
def test_mistakes(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_refusal_is_in_the_shells_words(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="no recipe 'nothing'"):
        verb.measure_run("nothing", [], tmp_path / "run")
