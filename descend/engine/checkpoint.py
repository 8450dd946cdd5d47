"""Checkpoints that cannot lie: written aside, synced, then renamed; checked by checksum before use.

    checkpoints/step-000200/   config.json, model.safetensors (opens in transformers), state.safetensors, state.json,
                               checksums.json
    checkpoints/last, best     links to such folders, replaced in one atomic step

A process killed at any moment leaves either the old set or the new one. A truncated or altered file is named, and the
checkpoint before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from descend.engine.state import pack, unpack
from descend.errors import Mistake

CHECKSUMS = "checksums.json"
KEEP = 2  # the newest ones, besides the best: one to use, one to fall back on


class Damaged(Exception):
    """A checkpoint that is incomplete or altered; the message names the file."""


def save(folder: Path, step: int, write_model: Callable[[Path], None], state: dict[str, Any]) -> Path:
    """Write checkpoint `step` below `folder` and point `last` to it. A full disk leaves the older ones untouched."""
    folder.mkdir(parents=True, exist_ok=True)
    clean(folder)
    aside, final = folder / f".aside-{os.getpid()}", folder / f"step-{step:06d}"
    try:
        aside.mkdir()
        write_model(aside)
        tensors: dict[str, Tensor] = {}
        tree = pack(state, tensors)
        save_file(unshared(tensors), aside / "state.safetensors")
        (aside / "state.json").write_text(json.dumps({"step": step, "tree": tree}))
        sums = {path.name: _digest(path) for path in sorted(aside.iterdir())}
        (aside / CHECKSUMS).write_text(json.dumps(sums, indent=2))
        for path in (*aside.iterdir(), aside):
            _sync(path)
        if final.exists():  # the same step again, after a resume from an older checkpoint
            os.rename(final, folder / f".old-{os.getpid()}")
        os.rename(aside, final)
        point(folder, "last", final)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(aside, ignore_errors=True)
        good = names(folder)
        kept = f"the last good checkpoint is {folder / good[-1]}" if good else "there is no checkpoint before it"
        raise Mistake(f"cannot write checkpoint {final}: {error}; {kept}. Free space and run: descend resume") from None
    return final


def unshared(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of a file must not share memory: copy the second of two that do (tied weights, views)."""
    seen: set[int] = set()
    for name, tensor in tensors.items():
        start = tensor.untyped_storage().data_ptr()
        if start in seen or tensor.untyped_storage().nbytes() != tensor.nbytes:
            tensors[name] = tensor.clone()
        seen.add(start)
    return tensors


def point(folder: Path, name: str, target: Path) -> None:
    """Make the link `name` point to a checkpoint, in one step that is never half done."""
    aside = folder / f".{name}-{os.getpid()}"
    aside.unlink(missing_ok=True)
    aside.symlink_to(target.name, target_is_directory=True)
    os.replace(aside, folder / name)
    _sync(folder)


def names(folder: Path) -> list[str]:
    """The checkpoints of a run, oldest first."""
    return sorted(p.name for p in folder.glob("step-*") if p.is_dir())


def prune(folder: Path) -> None:
    """Delete all but the newest checkpoints and those that `last` and `best` point to."""
    linked = {os.readlink(folder / name) for name in ("last", "best") if (folder / name).is_symlink()}
    for name in names(folder)[:-KEEP]:
        if name not in linked:
            shutil.rmtree(folder / name)


def clean(folder: Path) -> None:
    """Remove what a killed process left half written."""
    for path in folder.glob(".*"):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def verify(checkpoint: Path) -> None:
    """Raise Damaged, naming the file, unless every file is there and has its checksum."""
    try:
        sums = json.loads((checkpoint / CHECKSUMS).read_text())
        items = list(sums.items())
    except (OSError, ValueError, AttributeError) as error:
        raise Damaged(f"{checkpoint / CHECKSUMS}: {error}") from None
    for name, digest in items:
        path = checkpoint / name
        if not path.is_file():
            raise Damaged(f"{path} is missing")
        if _digest(path) != digest:
            raise Damaged(f"{path} does not have its checksum: it was cut short or altered")


def load(checkpoint: Path) -> tuple[int, dict[str, Any]]:
    """Step and state of a checkpoint, verified."""
    verify(checkpoint)
    meta = json.loads((checkpoint / "state.json").read_text())
    # A file's tensors lie unaligned in memory, which changes the rounding of sums (L-BFGS): copies are aligned.
    tensors = {name: tensor.clone() for name, tensor in load_file(checkpoint / "state.safetensors").items()}
    return meta["step"], unpack(meta["tree"], tensors)


def newest(folder: Path, warn: Callable[[str], None]) -> tuple[Path, int, dict[str, Any]]:
    """The newest checkpoint that is whole; each damaged one is named through `warn`."""
    for name in reversed(names(folder)):
        try:
            step, state = load(folder / name)
        except Damaged as damage:
            warn(f"damaged checkpoint {name}: {damage}; trying the one before it")
            continue
        return folder / name, step, state
    raise Mistake(f"{folder} holds no usable checkpoint; train again with: descend train")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
