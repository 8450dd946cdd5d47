"""descend landscape: the centre is the run's own loss, the line ends at its checkpoints, and mistakes are one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from descend import cli
from descend.engine.run import Run
from descend.verbs.evaluate import evaluate
from descend.verbs.landscape import landscape
from tests.close import close

FEW = ["--quiet", "--steps", "6", "--eval-every", "3", "--save-every", "3"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "wine"
    assert cli.main(["train", "mlp-wine", "--out", str(out), *FEW]) == 0
    return out


@pytest.mark.system("loss-landscape", "own-run", "slices")
def test_the_surface_of_a_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(p.name for p in run.iterdir())
    found = landscape(run, "last", points=3, radius=0.5, examples=10_000)
    close(found.loss, evaluate(run, "last")["valid"]["loss"])
    assert found.plane[1][1] == found.loss
    assert (found.checkpoint, found.start) == ("step-000006", "step-000003")
    close(found.line[found.way.index(0.0)], evaluate(run, 3)["valid"]["loss"])
    close(found.line[found.way.index(1.0)], found.loss)
    assert min(min(row) for row in found.plane) <= found.loss < max(max(row) for row in found.plane)
    assert sorted(p.name for p in run.iterdir()) == before
    other = landscape(run, "last", points=3, radius=0.5, examples=10_000, seed=1)
    assert other.line == found.line
    assert other.plane != found.plane
    capsys.readouterr()
    assert cli.main(["landscape", str(run), "--points", "3"]) == 0
    assert "loss at the checkpoint" in capsys.readouterr().out
    page = (run / "landscape.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert 'src="http' not in page
    assert cli.main(["landscape", str(run), "--points", "3", "--json", "--out", str(run / "s.png")]) == 0
    assert json.loads(capsys.readouterr().out)["plane"]
    assert (run / "s.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--points", "4"], "odd number"),
        (["--radius", "0"], "above 0"),
        (["--examples", "0"], "at least 1"),
        (["--start", "6", "--checkpoint", "6"], "a line needs another one"),
        (["--start", "5"], "5"),
        (["--out", "surface.pdf"], "must end in"),
    ],
)
def test_mistakes(run: Path, flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert cli.main(["landscape", str(run), *flags]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_run_of_two_players_has_no_single_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "gan"
    assert cli.main(["train", "gan-mixture", "--out", str(out), "--quiet", "--steps", "2"]) == 0
    capsys.readouterr()
    assert cli.main(["landscape", str(out)]) == 2
    assert "each with a loss of its own" in capsys.readouterr().err
    assert Run.open(out)
