"""Checkpoints: GPT-2 and its AdamW moments, 1.2 GB, saved and loaded beside plain safetensors of the same tensors.

save   ours writes aside, digests, syncs and renames          safetensors: save_file, with and without fsync
load   ours checks every digest; the numbers then go into a model and its moments that are there, on both sides
       (load_file alone maps the file and reads nothing)
stop   how long training stands still when the copy is written in a thread
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from descend.engine import checkpoint
from descend.engine.background import Writer, copy_state
from descend.models.gpt2 import GPT2, GPT2Config

SIZE = GPT2Config(vocab=50257, context=1024, width=768, depth=8, heads=12)
State = dict[str, Any]


def training_state() -> tuple[GPT2, State]:
    """A model, and what a checkpoint of its training holds: weights and two moments for each, as live tensors."""
    model = GPT2(SIZE)
    moments = {i: {m: torch.randn_like(p) for m in ("exp_avg", "exp_avg_sq")} for i, p in enumerate(model.parameters())}
    return model, {"step": 1, "task": dict(model.state_dict()), "optims": {"model": {"state": moments}}}


def flat(state: State) -> dict[str, Tensor]:
    """The same tensors for safetensors, each once."""
    moments = state["optims"]["model"]["state"]
    return state["task"] | {f"{i}.{name}": x for i, both in moments.items() for name, x in both.items()}


def timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


class Round:
    """One turn of each; what one leaves is on disk and away before the next begins."""

    def __init__(self, folder: Path):
        self.folder, self.file = folder / "ours", folder / "theirs.safetensors"
        self.model, self.state = training_state()
        self.tensors = flat(self.state)
        self.into = {name: torch.empty_like(x) for name, x in self.tensors.items()}
        self.writer = Writer()
        self.times: dict[str, list[float]] = {}

    def note(self, name: str, call: Callable[[], object]) -> None:
        os.sync()
        self.times.setdefault(name, []).append(timed(call))

    def save(self) -> None:
        checkpoint.save(self.folder, 1, self.model.save_pretrained, self.state)

    def load(self) -> None:
        self.take(flat(checkpoint.load(self.folder / "step-000001")[1]))

    def take(self, tensors: dict[str, Tensor]) -> None:
        for name, x in tensors.items():
            self.into[name].copy_(x)

    def save_theirs(self, synced: bool) -> None:
        save_file(self.tensors, self.file)
        if synced:
            sync(self.file)

    def play(self) -> None:
        for name, synced in (("save_file", False), ("save_file + fsync", True)):
            self.file.unlink(missing_ok=True)
            self.note(name, lambda: self.save_theirs(synced))
        self.note("load_file", lambda: self.take(load_file(self.file)))
        shutil.rmtree(self.folder, ignore_errors=True)
        self.note("save", self.save)
        self.note("load", self.load)
        self.note("stop", self.save_in_thread)
        self.writer.wait()

    def save_in_thread(self) -> None:
        copied = copy_state(self.state, self.state["task"], self.writer.copies)
        assert copied, "there is no memory for a copy"
        state, weights = copied
        write_model = lambda folder: self.model.save_pretrained(folder, state=weights)
        self.writer.start(lambda: checkpoint.save(self.folder, 2, write_model, state))


def measure(rounds: int = 5) -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_DISK")) as folder:
        turn = Round(Path(folder))
        for _ in range(rounds):
            turn.play()
        best = {name: min(times) for name, times in turn.times.items()}
        size = sum(x.nbytes for x in turn.tensors.values()) / 1e9
        disk = sum(p.stat().st_size for p in (turn.folder / "step-000001").iterdir()) / 1e9
    note = f"{size:.2f} GB: GPT-2 and AdamW; ours is {disk:.2f} GB on disk"
    rows = [
        ("checkpoint save", "save", "save_file + fsync", 1 / 1.3, f"{note}; theirs with fsync"),
        ("checkpoint save, their file not synced", "save", "save_file", 0.0, "ours on disk, theirs in memory"),
        ("checkpoint load", "load", "load_file", 0.5, "ours with every digest checked; into tensors that are there"),
        ("training stands still for a save", "stop", "save_file + fsync", 1.0, "the copy; a thread writes it"),
    ]
    return [
        {"name": name, "ours": best[ours], "theirs": best[theirs], "unit": "s", "ratio": best[theirs] / best[ours],
         "bar": bar, "note": text}
        for name, ours, theirs, bar, text in rows
    ]  # fmt: skip


if __name__ == "__main__":
    torch.set_num_threads(2)
    for row in measure():
        print(row)
