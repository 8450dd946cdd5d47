"""Saving in a thread: the state of its step, one at a time, and no error is lost."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from descend.engine import background, checkpoint
from descend.engine.background import Writer, available_memory, copy_state
from descend.engine.fit import save
from descend.engine.run import Run
from descend.errors import Mistake
from tests.engine.small import small, training


def test_one_write_at_a_time() -> None:
    writer, events = Writer(), []

    def write(number: int) -> None:
        events.append(f"begin {number}")
        time.sleep(0.02)
        events.append(f"end {number}")

    for number in range(3):
        writer.start(lambda number=number: write(number))
    writer.wait()
    assert events == [f"{what} {number}" for number in range(3) for what in ("begin", "end")]


def test_an_error_is_raised_once_where_it_is_waited_for() -> None:
    writer = Writer()

    def fail() -> None:
        raise Mistake("the disk is full")

    writer.start(fail)
    with pytest.raises(Mistake, match="the disk is full"):
        writer.start(lambda: None)
    writer.wait()


def test_a_copy_is_apart_and_shares_what_was_shared() -> None:
    x, y, array = torch.arange(6.0), torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last), np.arange(3)
    average = x * 2
    copied = copy_state({"x": x, "list": [x, (y, 7, "text")], "array": array}, {"w": x, "average": average}, {})
    assert copied is not None
    state, weights = copied
    assert state["x"] is state["list"][0] is weights["w"]
    assert weights["average"] is average
    expected = x.clone(), y.clone()
    x.zero_(), y.zero_(), array.fill(0)
    assert torch.equal(state["x"], expected[0])
    assert torch.equal(state["list"][1][0], expected[1])
    assert state["list"][1][1:] == (7, "text")
    assert state["array"].tolist() == [0, 1, 2]


def test_memory_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"x": torch.zeros(250), "same": None}
    state["same"] = state["x"]
    monkeypatch.setattr(background, "available_memory", lambda: 4000)
    copies: dict[background.Place, torch.Tensor] = {}
    assert copy_state(state, {}, copies) is not None
    monkeypatch.setattr(background, "available_memory", lambda: 3999)
    assert copy_state(state, {}, {}) is None
    assert copy_state(state, {}, copies) is not None, "what is held already counts as free"
    monkeypatch.setattr(background, "available_memory", lambda: 2999)
    assert copy_state(state, {}, copies) is None
    assert not copies, "and is let go when there is too little"


def test_the_memory_of_a_copy_is_used_again() -> None:
    x, copies = torch.zeros(100), dict[background.Place, torch.Tensor]()
    first = copy_state({"x": x, "gone": torch.ones(3)}, {}, copies)
    second = copy_state({"x": x.add_(1), "new": torch.ones(5)}, {}, copies)
    assert first is not None
    assert second is not None
    assert second[0]["x"] is first[0]["x"]
    assert second[0]["x"].eq(1).all()
    assert sorted(len(c) for c in copies.values()) == [5, 100]


def test_available_memory_is_the_least_that_the_system_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(background, "LIMITS", tmp_path)
    assert available_memory() == 0
    (tmp_path / "meminfo").write_text("MemTotal:  900 kB\nMemAvailable:   600 kB\n")
    assert available_memory() == 600 * 1024
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory() == 600 * 1024
    (tmp_path / "memory.max").write_text("5000\n")
    assert available_memory() == 4000


@pytest.mark.parametrize("ema", [0.0, 0.9], ids=["plain", "ema"])
def test_training_goes_on_while_its_step_is_written(
    ema: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, run, go = training(small(tmp_path, ema=ema)), Run(tmp_path / "run"), threading.Event()
    for _ in range(3):
        found.advance()
    expected = checkpoint.save(tmp_path / "now", 3, found.parts.model.save_pretrained, found.state_dict())
    write = checkpoint.save
    monkeypatch.setattr(checkpoint, "save", lambda *given: go.wait(10) and write(*given))
    save(found, run, best=True)
    found.advance()
    assert not run.checkpoints.exists(), "nothing is written or linked yet"
    go.set()
    run.close()
    assert (run.checkpoints / "best").resolve() == (run.checkpoints / "last").resolve()
    path = run.checkpoints / "step-000003"
    step, state = checkpoint.load(path)
    assert step == state["step"] == 3
    for name, tensor in checkpoint.load(expected)[1]["task"].items():
        assert torch.equal(state["task"][name], tensor), name
    same = (path / "model.safetensors").read_bytes() == (expected / "model.safetensors").read_bytes()
    assert same == (not ema), "the average is published, not the weights"


def test_without_memory_the_checkpoint_is_there_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "available_memory", lambda: 0)
    found, run = training(small(tmp_path)), Run(tmp_path / "run")
    save(found, run, best=False)
    assert checkpoint.names(run.checkpoints) == ["step-000000"]
    run.close()


def test_a_failed_write_ends_the_run_and_keeps_what_was_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, run = training(small(tmp_path)), Run.create(tmp_path / "run", {"name": "small"})
    save(found, run, best=False)
    run.writer.wait()

    def full(path: Path, tensors: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_tensors", full)
    found.advance()
    save(found, run, best=True)
    with pytest.raises(Mistake, match=r"cannot write checkpoint .*step-000001: .*No space left.*step-000000"):
        run.log({"step": 1, "event": "finished"})
    assert run.lines() == [], "an end that is not on disk is not told"
    assert checkpoint.names(run.checkpoints) == ["step-000000"]
    assert not (run.checkpoints / "best").exists()
    run.close()
