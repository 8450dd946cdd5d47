"""--checkpoint best, last or a step: the same words for every verb that opens a run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import descend
from descend.cli import main
from descend.errors import Mistake

SOURCE = Path(__file__).parent / "data" / "last_release" / "gan-mixture"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two checkpoints: the best one at step 3, the last one at step 6."""
    folder = Path(shutil.copytree(SOURCE, tmp_path_factory.mktemp("runs") / "run", symlinks=True))
    descend.resume(folder, quiet=True)
    return folder


def test_evaluate_says_which_one_it_scored(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for which, step in (("best", 3), ("last", 6), (3, 3), ("6", 6), ("step-000006", 6)):
        assert descend.evaluate(run, which)["checkpoint"] == f"step-{step:06d}"
    assert main(["evaluate", str(run), "--checkpoint", "last"]) == 0
    assert capsys.readouterr().out.startswith("checkpoint step-000006\n")


def test_sample_and_load_open_the_one_that_is_named(run: Path) -> None:
    best = descend.sample(run, 4)
    assert best.equal(descend.sample(run, 4, checkpoint=3))
    assert not best.equal(descend.sample(run, 4, checkpoint="last"))
    weights = {which: descend.load(run, which).state_dict()["out.weight"] for which in ("best", "last", 3)}
    assert weights["best"].equal(weights[3])
    assert not weights["best"].equal(weights["last"])
    assert descend.load(run).state_dict()["out.weight"].equal(weights["best"])


def test_doctor_examines_the_one_that_is_named(run: Path) -> None:
    norms = {which: descend.doctor(run, which).signs.layers for which in ("best", "last", 6)}
    assert norms["last"] == norms[6] != norms["best"]


@pytest.mark.parametrize("verb", ["evaluate", "sample", "doctor", "trace", "generate"])
def test_a_checkpoint_that_is_not_there(verb: str, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, str(run), "--checkpoint", "7"]) == 2
    said = capsys.readouterr().err
    assert "has no checkpoint '7'; there are: best (step-000003), last (step-000006), 3, 6" in said
    assert len(said.splitlines()) == 1


def test_layers_and_predict_take_it_too(run: Path) -> None:
    for verb in (descend.layers, descend.predict):
        with pytest.raises(Mistake, match="has no checkpoint '9'"):
            verb(str(run), checkpoint=9)


def test_trace_says_whose_loss_it_is(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = []
    for which in ("best", "last"):
        assert main(["trace", str(run), "--checkpoint", which, "--json"]) == 0
        values.append(json.loads(capsys.readouterr().out))
    assert values[0] != values[1]
