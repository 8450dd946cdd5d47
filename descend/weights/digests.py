"""Digests of a checkpoint's files: one for each tensor, so that damage is named to the tensor.

    checksums.json   {"format": 2, "files": {"state.safetensors": {"bytes", "header", "tensors": {name: digest}},
                                             "config.json": {"bytes", "digest"}}, "digest": of "files" itself}

A file in a folder (the parts of a pipeline) is named by its path, "unet/config.json".

xxh3 of 128 bits finds accidents (a flipped bit, a cut or swapped file), not forgery, and is as fast as memory. Files
are mapped and their tensors digested in threads. Format 1 had a SHA-256 for each file: {"config.json": hex}.
A checkpoint is checked whole before training continues from it. Who only opens the model has the model's files checked,
each once as long as its time stamp stays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

import xxhash
from safetensors.torch import load_file
from torch import Tensor

from descend.errors import Mistake
from descend.files import entries, explain_error, field, read_json
from descend.weights.checkpoints import CHECKSUMS
from descend.weights.tensor_file import HEADER, raw_bytes, read_header

FORMAT = 2
LARGE = 2**18  # bytes worth a thread
STATE = ("state.json", "state.safetensors")  # what a resume needs and a model does not
THREADS = 8  # more than cores: most of them wait for the disk

_checked: set[tuple[Path, int, int, int]] = set()  # files that were found intact: path, inode, size, time of change


class Damaged(Mistake):
    """A checkpoint that is incomplete or altered; the message names the file."""


def write_digests(checkpoint: Path, threads: Executor) -> Path:
    """Write checksums.json for the files that are there; returns its path."""
    paths = sorted(path for path in checkpoint.rglob("*") if path.is_file())
    files = {path.relative_to(checkpoint).as_posix(): digest_file(path, threads) for path in paths}
    content = {"format": FORMAT, "files": files, "digest": _digest_of(files)}
    path = checkpoint / CHECKSUMS
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return path


def digest_state(state: Mapping[str, Tensor]) -> str:
    """Of all tensors of a model, their names, shapes and types."""
    found = xxhash.xxh3_128()
    for name, tensor in state.items():
        found.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        found.update(raw_bytes(tensor.cpu().contiguous()))
    return found.hexdigest()


def digest_file(path: Path, threads: Executor) -> dict[str, Any]:
    """What checksums.json says of a file."""
    size = path.stat().st_size
    if path.suffix != ".safetensors":
        return {"bytes": size, "digest": _digest(path.read_bytes())}
    tensors = load_file(path)
    return {"bytes": size, "header": _digest(_header(path)), "tensors": _digest_tensors(tensors, threads)}


def verify(checkpoint: Path, threads: Executor) -> dict[str, dict[str, Tensor]]:
    """Raise Damaged, naming file and tensor, unless all is as it was written.

    Returns the tensors of each .safetensors file, mapped: their pages have been read, their bytes are not copied.
    """
    return {name: _verify_file(checkpoint / name, entry, threads) for name, entry in read_digests(checkpoint).items()}


def verify_model(folder: Path) -> None:
    """Refuse a checkpoint whose model, tokenizer or settings were altered; a folder without a list is taken as is."""
    if not (folder / CHECKSUMS).is_file():
        return
    listed = {name: entry for name, entry in read_digests(folder).items() if name not in STATE}
    stamps = {name: _stamp(folder / name) for name in listed}
    with ThreadPoolExecutor(THREADS) as threads:
        for name, entry in listed.items():
            if stamps[name] not in _checked:
                _verify_file(folder / name, entry, threads)
    _checked.update(stamps.values())


def read_digests(checkpoint: Path) -> dict[str, dict[str, Any]]:
    """What checksums.json says of each file; of the first format a SHA-256."""
    path = checkpoint / CHECKSUMS
    try:
        listed = read_json(path)
        if "format" not in listed:
            return {name: {"sha256": digest} for name, digest in entries({"files": listed}, "files", str, path).items()}
        files = entries(listed, "files", dict, path)
        if field(listed, "format", int, path) != FORMAT or field(listed, "digest", str, path) != _digest_of(files):
            raise Mistake(f"{path}: it was altered, or written by a newer release")
        if outside := next(
            (name for name in files if PurePosixPath(name).is_absolute() or ".." in name.split("/")), ""
        ):
            raise Mistake(f"{path} names {outside!r}, which is not in its folder")
        return files
    except Mistake as error:
        raise Damaged(str(error)) from None


def lies_outside(name: str) -> bool:
    """Whether a path leads out of the folder that it is told for."""
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or path.as_posix() != name


def _verify_file(path: Path, entry: dict[str, Any], threads: Executor) -> dict[str, Tensor]:
    """Sizes first: a file that was cut short must not be mapped."""
    try:
        if not path.is_file():
            raise Damaged(f"{path} is missing")
        if "sha256" in entry:
            return _verify_whole(path, entry["sha256"])
        if (size := path.stat().st_size) != entry.get("bytes"):
            raise Damaged(f"{path} has {size} bytes instead of {entry.get('bytes')}: it was cut short or altered")
        if "tensors" not in entry:
            if _digest(path.read_bytes()) != entry.get("digest"):
                raise Damaged(f"{path} does not have its checksum: it was altered")
            return {}
        if _digest(_header(path)) != entry.get("header"):
            raise Damaged(f"{path}: the header does not have its checksum: it was altered")
        tensors = load_file(path)
    except OSError as error:
        raise Damaged(f"{path} cannot be read: {explain_error(error)}") from None
    for name, digest in _digest_tensors(tensors, threads).items():
        if digest != entry["tensors"].get(name):
            raise Damaged(f"{path}: tensor {name!r} does not have its checksum: it was altered")
    return tensors


def _verify_whole(path: Path, digest: str) -> dict[str, Tensor]:
    """A file of the first format."""
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != digest:
            raise Damaged(f"{path} does not have its checksum: it was cut short or altered")
    if path.suffix != ".safetensors":
        return {}
    read_header(path)
    return load_file(path)


def _digest_tensors(tensors: dict[str, Tensor], threads: Executor) -> dict[str, str]:
    """A digest for each, in the file's order; large ones are digested in threads, the largest first."""
    order = sorted((name for name, x in tensors.items() if x.nbytes > LARGE), key=lambda name: -tensors[name].nbytes)
    large = {name: threads.submit(_digest, raw_bytes(tensors[name])) for name in order}
    return {name: large[name].result() if name in large else _digest(raw_bytes(x)) for name, x in tensors.items()}


def _header(path: Path) -> bytes:
    """The length and the header of a .safetensors file."""
    with path.open("rb") as file:
        length = file.read(8)
        return length + file.read(min(int.from_bytes(length, "little"), HEADER))


def _stamp(path: Path) -> tuple[Path, int, int, int]:
    """What changes when a file is written to or replaced."""
    try:
        found = path.stat()
    except OSError:
        raise Damaged(f"{path} is missing") from None
    return path.absolute(), found.st_ino, found.st_size, found.st_ctime_ns


def _digest(content: bytes | memoryview) -> str:
    return xxhash.xxh3_128_hexdigest(content)


def _digest_of(files: dict[str, Any]) -> str:
    return _digest(json.dumps(files, sort_keys=True).encode())
