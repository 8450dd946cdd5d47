"""Checkpoints cannot lie: damage of every kind is named, and the one before it is used."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from descend.engine import checkpoint
from descend.errors import Mistake
from descend.weights.checkpoints import CHECKSUMS, resolve_checkpoint
from descend.weights.tensor_file import write_tensors


def write(folder: Path, step: int) -> Path:
    state = {"weights": torch.full((1000,), float(step)), "more": torch.arange(2000.0), "step": step}

    def write_model(aside: Path) -> dict[str, dict[str, torch.Tensor]]:
        (aside / "model.bin").write_bytes(b"m" * 100)
        write_tensors(aside / "model.safetensors", {"public.weight": torch.arange(2000.0)})
        return {"model.safetensors": {"public.weight": torch.arange(2000.0)}}

    return checkpoint.save(folder, step, write_model, state)


def flip_bit(path: Path, at: int | None = None) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if at is None else at] ^= 1
    path.write_bytes(bytes(content))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda c: os.truncate(c / "state.safetensors", 900),
    "bit flipped in the state": lambda c: flip_bit(c / "state.safetensors"),
    "bit flipped in a tensor of the model": lambda c: flip_bit(c / "model.safetensors"),
    "bit flipped in a file beside the model": lambda c: flip_bit(c / "model.bin"),
    "bit flipped in the header": lambda c: flip_bit(c / "state.safetensors", 20),
    "lengthened": lambda c: (c / "state.safetensors").open("ab").write(b"x"),
    "files swapped": lambda c: shutil.copy(c / "model.safetensors", c / "state.safetensors"),
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


def test_a_flipped_bit_is_named_to_the_tensor(tmp_path: Path) -> None:
    path = write(tmp_path, 1)
    flip_bit(path / "model.safetensors")
    with pytest.raises(checkpoint.Damaged, match=r"model.safetensors: tensor 'public.weight'"):
        checkpoint.load(path)


def test_every_single_bit_counts(tmp_path: Path) -> None:
    """In every file, at twenty places."""
    path = write(tmp_path, 1)
    for file in sorted(path.iterdir()):
        content = file.read_bytes()
        for at in range(0, len(content), len(content) // 20):
            flip_bit(file, at)
            if file.name != CHECKSUMS or json.loads(content) != read(file):
                with pytest.raises(checkpoint.Damaged):
                    checkpoint.load(path)
            file.write_bytes(content)
    assert checkpoint.load(path)[0] == 1


def read(path: Path) -> object:
    """JSON, or None where it cannot be read; another space between two values changes nothing."""
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        return None


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


def test_loaded_tensors_are_aligned_and_apart_from_their_file(tmp_path: Path) -> None:
    """As fresh ones are: unaligned memory rounds sums in another way, and a state is there to be changed."""
    large = torch.randn(1 + checkpoint.MAPPED // 4)
    path = checkpoint.save(tmp_path, 1, lambda _: None, {"odd": torch.arange(3.0), "large": large, "x": torch.ones(7)})
    for _ in range(2):
        _, state = checkpoint.load(path)
        assert all(x.data_ptr() % 64 == 0 for x in state.values())
        assert torch.equal(state["large"], large)
        for x in state.values():
            x.zero_()


def save_until_killed(folder: Path, moment: int) -> None:
    """Save, link and prune as a run does; die when the folder is touched for the `moment`-th time."""
    touched = 0

    def look(event: str, given: tuple[object, ...]) -> None:
        nonlocal touched
        if event in ("open", "os.rename", "os.symlink", "os.mkdir", "os.remove", "os.rmdir"):
            touched += str(given[0]).startswith(str(folder))
            if touched > moment:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)
    checkpoint.point(folder, "best", write(folder, 3))
    checkpoint.prune(folder)


def test_killed_at_every_moment_of_a_save(tmp_path: Path) -> None:
    """The old set or the new one, each time; and the next save sweeps up."""
    fork = multiprocessing.get_context("fork")
    for moment in range(1000):
        run = tmp_path / str(moment)
        folder = run / "checkpoints"
        for step in (1, 2):
            write(folder, step)
        process = fork.Process(target=save_until_killed, args=(folder, moment))
        process.start()
        process.join()
        path, step, state = checkpoint.newest(folder, pytest.fail)
        assert step in (2, 3)
        assert torch.equal(state["weights"], torch.full((1000,), float(step)))
        assert resolve_checkpoint(run, "last") == path
        write(folder, 4)
        assert not [p for p in folder.glob(".*") if not p.name.startswith(".old")]
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
    assert step == 3
    assert moment > 15, "the moments were not found"


def test_all_checkpoints_stay_where_they_are_to_be_looked_at(tmp_path: Path) -> None:
    for step in (10, 20, 30, 40):
        (tmp_path / checkpoint.step_name(step)).mkdir()
    checkpoint.prune(tmp_path, 0)
    assert len(checkpoint.names(tmp_path)) == 4
    checkpoint.prune(tmp_path, 3)
    assert checkpoint.names(tmp_path) == [checkpoint.step_name(step) for step in (20, 30, 40)]
