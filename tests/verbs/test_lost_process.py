"""torchrun --max-restarts goes on by itself after a killed process, to the weights of the run that was never killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from descend.engine.run import Run
from descend.errors import Mistake
from descend.verbs.train import train
from descend.weights.checkpoints import resolve_checkpoint, step_name

FLAGS = ["--steps", "400", "--save-every", "20", "--eval-every", "200", "--quiet"]
LAUNCH = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "--max-restarts", "2"]


def start(folder: Path, *flags: str) -> subprocess.Popen[str]:
    command = [*LAUNCH, "-m", "descend", "train", "mlp-moons", *FLAGS, "--out", str(folder), *flags]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def find_processes(parent: int) -> dict[int, int]:
    """The process of each rank that torchrun has started."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1]) != parent:
                continue
            told = dict(line.split("=", 1) for line in (folder / "environ").read_text().split("\0") if "=" in line)
        except OSError:
            continue
        if "RANK" in told:
            found[int(told["RANK"])] = int(folder.name)
    return found


def wait_for_checkpoint(folder: Path) -> None:
    end = time.monotonic() + 120
    while not list((folder / "checkpoints").glob("step-*")):
        assert time.monotonic() < end, "no checkpoint"
        time.sleep(0.02)


def test_a_killed_process_comes_back_and_the_run_ends_with_the_same_weights(tmp_path: Path) -> None:
    whole = start(tmp_path / "whole")
    assert whole.wait(timeout=200) == 0
    killed = start(tmp_path / "killed")
    wait_for_checkpoint(tmp_path / "killed")
    os.kill(find_processes(killed.pid)[1], signal.SIGKILL)
    _, told = killed.communicate(timeout=200)
    assert killed.returncode == 0, told
    assert told.count("descend: process 0 of 2 stops") <= 1  # none where torchrun ended it before it noticed
    assert "Traceback" not in told
    one, other = (load_file(tmp_path / name / "checkpoints/last/model.safetensors") for name in ("whole", "killed"))
    assert all((one[key] == other[key]).all() for key in one)


def test_a_signal_to_torchrun_itself_saves_the_run(tmp_path: Path) -> None:
    """What a cluster sends. torchrun hands it on, and then ends with a traceback of its own, as it always does."""
    asked = start(tmp_path / "run", "--steps", "100000", "--save-every", "50")
    wait_for_checkpoint(tmp_path / "run")
    asked.terminate()
    told, errors = asked.communicate(timeout=100)
    last = Run(tmp_path / "run").lines()[-1]
    assert last["event"] == "SIGTERM"
    assert told.count("SIGTERM: saved at step") == 1
    assert "descend/" not in errors, errors
    assert resolve_checkpoint(tmp_path / "run", "last").name == step_name(last["step"])


def test_a_run_is_continued_only_when_it_is_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from descend import recipes

    for name in ("TORCHELASTIC_RESTART_COUNT", "WORLD_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)
    moons = recipes.get("mlp-moons")
    moons = replace(moons, loop=replace(moons.loop, steps=4, eval_every=2, save_every=2))
    out = tmp_path / "run"
    _, first = train(moons, out=out, quiet=True, resume_if_there=True)
    with pytest.raises(Mistake, match="already holds a run"):
        train(moons, out=out, quiet=True)
    _, again = train(moons, out=out, quiet=True, resume_if_there=True)
    assert (again.step, again.best) == (first.step, first.best)
    with pytest.raises(Mistake, match="already holds a run"):
        train(replace(moons, loop=replace(moons.loop, seed=1)), out=out, quiet=True, resume_if_there=True)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    assert train(moons, out=out, quiet=True)[1].step == 4
