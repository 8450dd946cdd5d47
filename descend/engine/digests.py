"""Digests of a checkpoint's files: one for each tensor, so that damage is named to the tensor.

    checksums.json   {"format": 2, "files": {"state.safetensors": {"bytes", "header", "tensors": {name: digest}},
                                             "config.json": {"bytes", "digest"}}, "digest": of "files" itself}

xxh3 of 128 bits finds accidents (a flipped bit, a cut or swapped file), not forgery, and is as fast as memory. Files
are mapped and their tensors digested in threads. Format 1 had a SHA-256 for each file: {"config.json": hex}.
"""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import xxhash
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from descend.weights.checkpoints import CHECKSUMS
from descend.weights.tensor_file import raw_bytes

FORMAT = 2
LARGE = 2**18  # bytes worth a thread


class Damaged(Exception):
    """A checkpoint that is incomplete or altered; the message names the file."""


def write_digests(checkpoint: Path, threads: Executor) -> Path:
    """Write checksums.json for the files that are there; returns its path."""
    files = {path.name: digest_file(path, threads) for path in sorted(checkpoint.iterdir())}
    content = {"format": FORMAT, "files": files, "digest": _digest_of(files)}
    path = checkpoint / CHECKSUMS
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return path


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
    try:
        listed = json.loads((checkpoint / CHECKSUMS).read_text(encoding="utf-8"))
        if "format" not in listed:
            return _verify_first_format(checkpoint, listed)
        files = listed["files"]
        if listed["format"] != FORMAT or listed["digest"] != _digest_of(files):
            raise ValueError("it was altered, or written by a newer release")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{checkpoint / CHECKSUMS}: {error}") from None
    return {name: _verify_file(checkpoint / name, entry, threads) for name, entry in files.items()}


def _verify_file(path: Path, entry: dict[str, Any], threads: Executor) -> dict[str, Tensor]:
    """Sizes first: a file that was cut short must not be mapped."""
    if not path.is_file():
        raise Damaged(f"{path} is missing")
    if (size := path.stat().st_size) != entry["bytes"]:
        raise Damaged(f"{path} has {size} bytes instead of {entry['bytes']}: it was cut short or altered")
    if "tensors" not in entry:
        if _digest(path.read_bytes()) != entry["digest"]:
            raise Damaged(f"{path} does not have its checksum: it was altered")
        return {}
    if _digest(_header(path)) != entry["header"]:
        raise Damaged(f"{path}: the header does not have its checksum: it was altered")
    tensors = load_file(path)
    for name, digest in _digest_tensors(tensors, threads).items():
        if digest != entry["tensors"][name]:
            raise Damaged(f"{path}: tensor {name!r} does not have its checksum: it was altered")
    return tensors


def _verify_first_format(checkpoint: Path, listed: dict[str, str]) -> dict[str, dict[str, Tensor]]:
    """Whole files, by SHA-256."""
    tensors = {}
    for name, digest in listed.items():
        path = checkpoint / name
        if not path.is_file():
            raise Damaged(f"{path} is missing")
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise Damaged(f"{path} does not have its checksum: it was cut short or altered")
        if path.suffix == ".safetensors":
            try:
                tensors[name] = load_file(path)
            except SafetensorError as error:
                raise Damaged(f"{path}: {error}") from None
    return tensors


def _digest_tensors(tensors: dict[str, Tensor], threads: Executor) -> dict[str, str]:
    """A digest for each, in the file's order; large ones are digested in threads."""
    large = {name: threads.submit(_digest, raw_bytes(x)) for name, x in tensors.items() if x.nbytes > LARGE}
    return {name: large[name].result() if name in large else _digest(raw_bytes(x)) for name, x in tensors.items()}


def _header(path: Path) -> bytes:
    """The length and the header of a .safetensors file."""
    with path.open("rb") as file:
        length = file.read(8)
        return length + file.read(int.from_bytes(length, "little"))


def _digest(content: bytes | memoryview) -> str:
    return xxhash.xxh3_128_hexdigest(content)


def _digest_of(files: dict[str, Any]) -> str:
    return _digest(json.dumps(files, sort_keys=True).encode())
