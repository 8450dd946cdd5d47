"""Checkpoints cannot lie: damage of every kind is named, and the one before it is used."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from descend.engine import checkpoint
from descend.errors import Mistake


def write(folder: Path, step: int) -> Path:
    state = {"weights": torch.full((1000,), float(step)), "step": step}
    return checkpoint.save(folder, step, lambda f: (f / "model.bin").write_bytes(b"m" * 100) and None, state)


def flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda c: os.truncate(c / "state.safetensors", 900),
    "bit flipped in the state": lambda c: flip_bit(c / "state.safetensors"),
    "bit flipped in the model": lambda c: flip_bit(c / "model.bin"),
    "bit flipped in the numbers": lambda c: flip_bit(c / "state.json"),
    "bit flipped in the checksums": lambda c: flip_bit(c / "checksums.json"),
    "file missing": lambda c: (c / "state.json").unlink(),
    "checksums missing": lambda c: (c / "checksums.json").unlink(),
    "emptied": lambda c: (c / "state.json").write_bytes(b""),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(kind: str, tmp_path: Path) -> None:
    write(tmp_path, 1)
    DAMAGE[kind](write(tmp_path, 2))
    said: list[str] = []
    path, step, state = checkpoint.newest(tmp_path, said.append)
    assert (path.name, step) == ("step-000001", 1)
    assert torch.equal(state["weights"], torch.full((1000,), 1.0))
    assert len(said) == 1
    assert "step-000002" in said[0]


def test_no_usable_checkpoint_is_a_mistake(tmp_path: Path) -> None:
    DAMAGE["truncated"](write(tmp_path, 1))
    with pytest.raises(Mistake, match="no usable checkpoint"):
        checkpoint.newest(tmp_path, lambda _: None)


def test_a_half_written_one_does_not_count_and_is_swept_away(tmp_path: Path) -> None:
    write(tmp_path, 1)
    half = tmp_path / ".aside-123"
    half.mkdir()
    (half / "state.safetensors").write_bytes(b"half")
    assert checkpoint.newest(tmp_path, lambda _: None)[1] == 1
    write(tmp_path, 2)
    assert not half.exists()


def test_the_newest_two_and_the_best_are_kept(tmp_path: Path) -> None:
    for step in range(1, 6):
        path = write(tmp_path, step)
        if step == 2:
            checkpoint.point(tmp_path, "best", path)
        checkpoint.prune(tmp_path)
    assert checkpoint.names(tmp_path) == ["step-000002", "step-000004", "step-000005"]
    assert (tmp_path / "last").resolve().name == "step-000005"
    assert (tmp_path / "best").resolve().name == "step-000002"


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from tests.engine.test_checkpoint import write
from descend.errors import Mistake
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder = Path(sys.argv[1])
write(folder, 1)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))   # the system refuses to write more, as a full disk does
try:
    write(folder, 2)
except Mistake as mistake:
    print(mistake)
"""


def test_a_full_disk_costs_only_the_new_checkpoint(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "cannot write checkpoint" in done.stdout
    assert "last good checkpoint is" in done.stdout
    assert checkpoint.names(tmp_path) == ["step-000001"]
    assert checkpoint.newest(tmp_path, lambda _: None)[1] == 1
    assert not list(tmp_path.glob(".aside*"))


def test_tensors_that_share_memory_are_saved(tmp_path: Path) -> None:
    x = torch.arange(6.0)
    checkpoint.save(tmp_path, 1, lambda _: None, {"whole": x, "view": x[2:4], "again": x})
    _, state = checkpoint.load(tmp_path / "step-000001")
    assert torch.equal(state["view"], x[2:4])
    assert torch.equal(state["again"], x)
