"""tune as a user calls it: real runs, kill -9, the test data, seeds, the command that repeats the best trial."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import descend
from descend.cli import main
from descend.data.images.digits import Digits
from descend.data.images.labelled import Splits
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.models.mlp import MLPConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Constant
from descend.verbs.trials import Live
from tests.engine.small import small, text_file
from tests.verbs.test_train import WIDTHS

SEARCH = ["--search", "optim.lr=1e-4..1e-1:log", "--search", "batch=2,4"]


def flags(folder: Path, *more: str) -> list[str]:
    text = ["--data.path", str(text_file(folder)), "--data.tokenizer", "characters"]
    length = ["--steps", "12", "--eval-every", "3", "--save-every", "2", "--threads", "1"]
    return ["tune", "gpt2-pydoc", *SEARCH, *WIDTHS, *text, *length, *more]


def outcome(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(t["state"], t["values"], t["score"], t["scores"]) for t in found["trials"]]


def printed(capsys: pytest.CaptureFixture[str], args: list[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main(args) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_study_is_a_folder_of_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "study"
    ask = flags(tmp_path, "--trials", "2", "--sampler", "random", "--out", str(out))
    assert main(ask) == 0
    said, lines = capsys.readouterr()
    assert "2 of 2 trials" in said
    assert [line[:14] for line in lines.splitlines()] == ["trial 000 of 2", "trial 001 of 2"]
    assert "optim.lr" in lines
    assert "\x1b" not in said + lines
    page = (out / "report.html").read_text()
    assert "descend train gpt2-pydoc" in page
    found = printed(capsys, [*ask, "--json"])  # the same command again: everything is there already
    assert found["state"] == "finished"
    best = found["best"]
    assert best["score"] == min(t["score"] for t in found["trials"])
    for t in found["trials"]:
        run = out / t["run"]
        assert (run / "checkpoints/best/model.safetensors").exists()
        assert (run / "report.html").exists()
        logged = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        assert t["score"] == min(line["valid"]["loss"] for line in logged if "valid" in line)
        saved = json.loads((run / "recipe.json").read_text())["values"]
        assert saved["optim"]["lr"] == t["values"]["optim.lr"]
        assert saved["loop"]["batch"] == t["values"]["batch"]
    again = tmp_path / "again"
    words = shlex.split(found["command"])[1:]
    assert main([*words, "--out", str(again), "--quiet"]) == 0  # the printed command repeats the best trial, to the bit
    weights = "checkpoints/best/model.safetensors"
    assert (again / weights).read_bytes() == (out / best["run"] / weights).read_bytes()


@pytest.mark.system("grid-and-random-search")
def test_more_trials_and_another_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "study")
    ask = flags(tmp_path, "--out", out, "--sampler", "random", "--quiet")
    two = printed(capsys, [*ask, "--trials", "2", "--json"])
    three = printed(capsys, ["tune", "--resume", out, "--trials", "3", "--quiet", "--json"])
    assert outcome(three)[:2] == outcome(two)
    assert len(three["trials"]) == 3
    assert main([*ask, "--seed", "1"]) == 2
    assert "holds a study with a different recipe;" in capsys.readouterr().err
    one = printed(capsys, [*ask, "--seed", "1", "--trials", "1", "--replace", "--json"])
    assert len(one["trials"]) == 1
    assert one["trials"][0]["values"] != two["trials"][0]["values"]  # another seed, other values
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "letter.txt").write_text("mine")
    assert main(flags(tmp_path, "--out", str(tmp_path / "own"), "--replace")) == 2
    assert (tmp_path / "own" / "letter.txt").exists()


def test_killed_and_continued_it_ends_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """kill -9 in the middle of the second trial; the same command again ends with the same trials and scores."""
    ask = flags(tmp_path, "--trials", "3", "--sampler", "tpe", "--quiet", "--json", "--out")
    out = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-m", "descend", *ask, str(out)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 100  # far more than it takes: the machine may be busy
    while not list(out.glob("trials/001/checkpoints/step-*")) and time.monotonic() < deadline:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    left = (out / "journal.log").read_bytes()
    killed = printed(capsys, [*ask, str(out)])
    whole = printed(capsys, [*ask, str(tmp_path / "whole")])
    assert outcome(killed) == outcome(whole)
    assert (out / "journal.log").read_bytes().startswith(left)  # what was done was not done again
    for t in whole["trials"]:
        path = f"{t['run']}/checkpoints/last/model.safetensors"
        assert (out / path).read_bytes() == (tmp_path / "whole" / path).read_bytes()


def digits(**changes: Any) -> ClassifyImages:
    loop = Loop(steps=12, batch=32, eval_every=4, save_every=50, watch="max accuracy", threads=1)
    return ClassifyImages(
        model=MLPConfig(hidden=(8,)),
        data=Digits(),
        optim=AdamW(lr=1e-2),
        schedule=Constant(),
        loop=replace(loop, **changes),
    )


def test_the_test_data_is_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With poisoned test images nothing changes, and nobody asks for them."""
    search = ["optim.lr=1e-3..1e-1:log"]
    clean = descend.tune(digits(), None, tmp_path / "clean", search, trials=2, quiet=True)
    read = Digits.read

    def poisoned(self: Digits) -> Splits:
        parts = read(self)
        spoiled = replace(parts.test, x=torch.full_like(parts.test.x, torch.nan), y=torch.zeros_like(parts.test.y))
        return replace(parts, test=spoiled)

    def refuse(self: ClassifyImages) -> Any:
        raise AssertionError("the test data was asked for")

    monkeypatch.setattr(Digits, "read", poisoned)
    monkeypatch.setattr(ClassifyImages, "test", refuse)
    found = descend.tune(digits(), None, tmp_path / "poisoned", search, trials=2, quiet=True)
    assert outcome(found) == outcome(clean)
    assert all(abs(t["score"]) < float("inf") for t in found["trials"])
    logs = [(tmp_path / "poisoned" / t["run"] / "metrics.jsonl").read_text() for t in found["trials"]]
    assert not any('"test"' in log for log in logs)
    monkeypatch.undo()
    monkeypatch.setattr(Digits, "read", poisoned)
    assert "test" in descend.evaluate(tmp_path / "poisoned" / found["best"]["run"])  # only this reads it


@pytest.mark.system("bayesian-optimization")
@pytest.mark.system("bayesian-optimization", "real")
def test_bayesian_optimization_of_a_real_validation_score(tmp_path: Path) -> None:
    """After the random trials the process proposes rates near the good ones, and the last are among the best."""
    recipe = digits(steps=24, eval_every=12)
    found = descend.tune(recipe, None, tmp_path / "study", ["optim.lr=1e-5..1:log"], 9, "gp", "none", quiet=True)
    scores = [t["score"] for t in found["trials"]]
    assert max(scores[6:]) >= max(scores[:6])
    assert sum(scores[6:]) / 3 > sum(scores[:6]) / 6 + 0.1
    assert 1e-3 < found["best"]["values"]["optim.lr"] < 1
    assert found["command"] == ""  # a recipe of one's own has no name to train by


def test_pruning_divergence_and_budget_in_real_runs(tmp_path: Path) -> None:
    search = ["optim.lr=1e-2,2e-2,3e-2,4e-2,1e-7"]
    found = descend.tune(digits(), None, tmp_path / "pruned", search, sampler="grid", quiet=True)
    states = {t["values"]["optim.lr"]: t["state"] for t in found["trials"]}
    assert states[1e-7] == "pruned"
    pruned = next(t for t in found["trials"] if t["state"] == "pruned")
    run = Path(found["study"]) / pruned["run"]
    assert json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])["event"] == "pruned"
    assert (run / "report.html").exists()
    recipe = small(tmp_path)
    short = descend.tune(
        recipe, None, tmp_path / "short", ["optim.lr=1e-3..1e-2"], 3, "random", budget="0.001s", quiet=True
    )
    assert short["state"] == "budget"
    assert short["best"] is None
    wild = descend.tune(recipe, None, tmp_path / "wild", ["optim.lr=1e-3,1e6"], sampler="grid", quiet=True)
    assert [t["state"] for t in wild["trials"]] == ["complete", "failed"]
    assert "loss" in wild["trials"][1]["fault"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["tune", "lenet-digit"], "Did you mean 'lenet-digits'?"),
        (["tune", "--trials", "3"], "name the recipe first"),
        (["tune", "lenet-digits", "--search", "optim.lrr=1..2"], "Did you mean 'optim.lr'?"),
        (["tune", "lenet-digits", "--sampler", "gpp"], "'gpp' is not one of grid, random, tpe, gp"),
        (["tune", "lenet-digits", "--trials", "-2"], "--trials -2"),
        (["tune", "--resume", "nowhere"], "nowhere holds no study"),
        (["tune", "lenet-digits", "--budget", "soon"], "give a time such as"),
    ],
)
def test_mistakes(
    args: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(args) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune"]) == 0
    assert "--search optim.lr=1e-4..1e-1:log" in capsys.readouterr().out


def test_the_live_line_is_drawn_over_itself(capsys: pytest.CaptureFixture[str]) -> None:
    line = Live("trial 000 of 2  optim.lr 0.01")
    line.update(1, loss=2.0, rate=1.0)
    line.update(2, loss=2.0, rate=1.0)  # too soon to draw again
    line.update(3, loss=2.0, rate=1.0, valid={"accuracy": 0.5})
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\r\x1b[K") == 2
    assert err.endswith("step 3  accuracy 0.500")
