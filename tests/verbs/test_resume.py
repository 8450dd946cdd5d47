"""descend resume: the same bits, or one line that says why not."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from descend.data.tables.source import Table
from descend.engine import checkpoint, fingerprint
from descend.engine.fit import Result
from descend.engine.run import Run
from descend.errors import Mistake
from descend.kinds.recipe import Recipe
from descend.kinds.table import LearnTable
from descend.models.mlp import MLPConfig
from descend.verbs.resume import resume
from descend.verbs.start import run_recipe
from tests.engine.small import small, weights


@pytest.fixture(autouse=True)
def _no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report takes longer than the training."""
    monkeypatch.setattr("descend.verbs.start.write_report", lambda folder, exhibits: folder)


@pytest.fixture(autouse=True)
def _threads() -> object:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def stop(recipe: Recipe, folder: Path) -> Run:
    """A run as a kill after its first checkpoint leaves it."""
    run, _ = run_recipe("mine", recipe, folder, quiet=True)
    for name in checkpoint.names(run.checkpoints)[1:]:
        shutil.rmtree(run.checkpoints / name)
    return Run(run.folder)


def change_text(folder: Path, old: str, new: str) -> None:
    path = folder / "text.txt"
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("hill", "dune", r"text\.txt has changed \(the same size, other content\)"),
        ("cat", "caterpillar", r"text\.txt has changed \(6,750 bytes, now 7,550\)"),
        ("wh", "hw", r"text\.txt has changed"),  # the same letters
    ],
)
def test_changed_data_are_named_and_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    run = stop(small(tmp_path), tmp_path / "run")
    before = run.metrics_file.read_bytes()
    change_text(tmp_path, old, new)
    with pytest.raises(Mistake, match=said) as caught:
        resume(run.folder, quiet=True)
    assert f"descend resume {run.folder} --accept-changes" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert run.metrics_file.read_bytes() == before


def test_changes_that_are_accepted_are_logged(tmp_path: Path) -> None:
    """Once: the next checkpoint holds the new data."""
    run = stop(small(tmp_path), tmp_path / "run")
    change_text(tmp_path, "nobody knows why", "nobody whys know")
    _, result = resume(run.folder, quiet=True, accept_changes=True)
    assert (result.reason, result.step) == ("finished", 12)
    (line,) = [line for line in run.lines() if line.get("event") == "resumed"]
    assert line["step"] == 9
    assert "text.txt has changed (the same size, other content)" in line["changes"]
    assert resume(run.folder, quiet=True)[1].reason == "finished"


def test_a_vocabulary_of_another_size_is_one_line(tmp_path: Path) -> None:
    run = stop(small(tmp_path), tmp_path / "run")
    change_text(tmp_path, "hill", "HILL")
    with pytest.raises(Mistake, match=r"tokenizer\.json, made from the data, has changed"):
        resume(run.folder, quiet=True)
    with pytest.raises(Mistake, match=r"another model: 'model.wte.weight' is \d+×16 there and \d+×16 now; ") as caught:
        resume(run.folder, quiet=True, accept_changes=True)
    assert "\n" not in str(caught.value)


def test_another_order_of_the_same_letters_is_another_vocabulary(tmp_path: Path) -> None:
    """Every file but the tokenizer is as it was: ids would mean other letters."""
    run = stop(small(tmp_path), tmp_path / "run")
    taken = fingerprint.digest_saved
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fingerprint, "digest_saved", lambda save: dict.fromkeys(taken(save), "1 0"))
        with pytest.raises(Mistake, match=r"tokenizer\.json, made from the data, has changed"):
            resume(run.folder, quiet=True)


@pytest.mark.parametrize("name", ["torch", "numpy", "descend", "threads", "processes", "instructions"])
def test_another_environment_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stop(small(tmp_path, steps=4), tmp_path / "run")
    found = fingerprint.describe_software(1)
    other = lambda *_: {**found, name: "other"}
    monkeypatch.setattr("descend.engine.training.describe_software", other)
    with pytest.raises(Mistake, match=f"{name} was {found[name]}, is other".replace("+", r"\+")):
        resume(run.folder, quiet=True)


def test_compiled_code_that_is_gone_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention and GELU without it round otherwise."""
    run = stop(small(tmp_path), tmp_path / "run")
    _, _, state = checkpoint.newest(run.checkpoints, print)
    if state["fingerprint"]["environment"].get("native code") != "on":
        pytest.skip("there is no compiler")
    gone = lambda: None
    gone.cache_info = fingerprint.library.cache_info  # type: ignore[attr-defined]
    monkeypatch.setattr(fingerprint, "library", gone)
    with pytest.raises(Mistake, match="native code was on, is off"):
        resume(run.folder, quiet=True)


def big_table(folder: Path) -> LearnTable:
    """Enough numbers that several threads share the sums over a column."""
    x = np.random.default_rng(0).lognormal(size=(60_000, 2))
    rows = [f"{a!r},{b!r},{a * b!r}" for a, b in x.tolist()]
    (folder / "table.csv").write_text("\n".join(["a,b,y", *rows]))
    data = Table(path=str(folder / "table.csv"), target="y")
    loop = replace(LearnTable().loop, steps=4, batch=32, eval_every=2, save_every=2)
    return LearnTable(model=MLPConfig(hidden=(4,)), data=data, loop=loop)


def test_data_are_read_alike_with_any_number_of_threads(tmp_path: Path) -> None:
    """`train` reads before it knows how many threads the run will have, `resume` after."""
    recipe = big_table(tmp_path)
    torch.set_num_threads(4)
    whole, _ = run_recipe("mine", recipe, tmp_path / "whole", quiet=True)
    assert whole.recipe["environment"]["threads"] == 1
    torch.set_num_threads(4)
    run = stop(recipe, tmp_path / "run")
    torch.set_num_threads(3)
    resume(run.folder, quiet=True)
    assert weights(run) == weights(whole)
    read = lambda run: (run.checkpoints / "step-000004" / "columns.json").read_bytes()
    assert read(run) == read(whole)


def test_an_ended_run_says_so_and_gets_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A kill came between the last checkpoint and the report."""
    run, _ = run_recipe("mine", small(tmp_path), tmp_path / "run", quiet=True)
    for name in ("last", "best"):
        (run.checkpoints / name).unlink()
    written: list[Path] = []
    monkeypatch.setattr("descend.verbs.start.write_report", lambda folder, exhibits: written.append(folder))
    _, result = resume(run.folder)
    assert isinstance(result, Result)
    assert (result.reason, result.step) == ("finished", 12)
    assert "this run has ended (finished, step 12)" in capsys.readouterr().err
    assert written
    assert sorted(p.name for p in run.checkpoints.iterdir() if p.is_symlink()) == ["best", "last"]
