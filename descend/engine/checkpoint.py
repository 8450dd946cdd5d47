"""Checkpoints that cannot lie: written aside, synced, then renamed; checked by checksum before use.

    checkpoints/step-000200/   config.json, model.safetensors (opens in transformers), state.safetensors, state.json,
                               checksums.json
    checkpoints/last, best     links to such folders, replaced in one atomic step

A process killed at any moment leaves either the old set or the new one. A truncated or altered file is named, and the
checkpoint before it is used. Each tensor is written once: state.safetensors leaves out what model.safetensors holds.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor

from descend.engine.loop import KEEP
from descend.engine.references import Stored, find_references, read_reference
from descend.engine.state import pack, unpack
from descend.errors import Mistake
from descend.files import field, field_or, read_json, sync
from descend.weights.checkpoints import checkpoint_names, find_best, list_folder, read_link, step_name
from descend.weights.digests import THREADS, Damaged, verify, write_digests
from descend.weights.tensor_file import align, write_tensors

STATE = "state.safetensors"
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
MAPPED = 2**20  # bytes above which a loaded tensor stays mapped; small ones must not keep a deleted file alive


def save(folder: Path, step: int, write_model: Callable[[Path], Stored | None], state: dict[str, Any]) -> Path:
    """Write checkpoint `step` below `folder` and point `last` to it. A full disk leaves the older ones untouched.

    `write_model` writes the model's files into the folder it is given, and returns what tensors they hold.
    """
    aside, final = folder / f".aside-{os.getpid()}", folder / step_name(step)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        clean(folder)
        aside.mkdir()
        with ThreadPoolExecutor(THREADS) as threads:
            _write(aside, step, write_model, state, threads)
        sync(aside)
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


def _write(
    aside: Path, step: int, write_model: Callable[[Path], Stored | None], state: dict[str, Any], threads: Executor
) -> None:
    """All files of a checkpoint, on disk when it returns. The disk works on one file while the next is prepared."""
    published = write_model(aside) or {}
    syncs = [threads.submit(sync, path) for path in aside.rglob("*")]
    tensors: dict[str, Tensor] = {}
    tree = pack(state, tensors)
    stored = find_references(tensors, published, threads)
    write_tensors(aside / STATE, {name: tensor for name, tensor in tensors.items() if name not in stored})
    syncs.append(threads.submit(sync, aside / STATE))
    meta = {"step": step, "tree": tree, "stored": stored}
    (aside / "state.json").write_text(json.dumps(meta), encoding="utf-8")
    for path in write_digests(aside, threads), aside / "state.json":
        sync(path)
    for done in syncs:
        done.result()


def point(folder: Path, name: str, target: Path) -> None:
    """Make the link `name` point to a checkpoint, in one step that is never half done.

    Links are for people: where something else has the name, or the disk knows no links, there is none.
    """
    aside = folder / f".{name}-{os.getpid()}"
    try:
        aside.unlink(missing_ok=True)
        aside.symlink_to(target.name, target_is_directory=True)
        os.replace(aside, folder / name)
    except OSError as error:
        aside.unlink(missing_ok=True)
        if not isinstance(error, IsADirectoryError) and error.errno not in NO_LINKS:
            raise
    sync(folder)


def names(folder: Path) -> list[str]:
    """The checkpoints of a run, oldest first."""
    return checkpoint_names(folder)


def prune(folder: Path, keep: int = KEEP) -> None:
    """Delete all but the newest checkpoints and those that `last` and `best` point to; with 0 none is deleted."""
    there = names(folder)
    best = find_best(folder, there) if there else None
    kept = {read_link(folder / name) for name in ("last", "best")} | {step_name(best or 0)}
    for name in there[:-keep] if keep else []:
        if name not in kept:
            shutil.rmtree(folder / name, ignore_errors=True)  # what stays is no reason to stop training


def clean(folder: Path) -> None:
    """Remove what a killed process left half written."""
    for path in (path for path in list_folder(folder) if path.name.startswith(".")):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def load(checkpoint: Path) -> tuple[int, dict[str, Any]]:
    """Step and state of a checkpoint, verified. Large tensors are views of the mapped files: writing to one leaves the
    file as it is."""
    path = checkpoint / "state.json"
    try:
        with ThreadPoolExecutor(THREADS) as threads:
            files = verify(checkpoint, threads)
        meta = read_json(path)
        stored = field_or(meta, "stored", dict, {}, path)
        found = files[STATE] | {name: read_reference(where, files) for name, where in stored.items()}
        # Unaligned memory changes the rounding of sums (L-BFGS); files of older releases are not aligned.
        tensors = {name: align(x) if x.nbytes > MAPPED else x.clone() for name, x in found.items()}
        return field(meta, "step", int, path), unpack(field(meta, "tree", dict, path), tensors)
    except Mistake as mistake:
        raise Damaged(str(mistake)) from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise Damaged(f"{path} does not fit the tensors beside it ({error!r})") from None


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
