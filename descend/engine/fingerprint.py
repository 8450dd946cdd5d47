"""What a run depends on besides its state: the user's files, what was learned from them, and the environment.

    data          each file that the data are read from: its size and digest (of many files, one for each folder)
    saved         each file that goes with the model and is made from the data: tokenizer.json, columns.json, …
    packages      those that embedded data come from: their versions
    environment   versions, processor, threads, processes, compiled code: what rounding may depend on

Every checkpoint keeps it. A resume with another one would not give the bits of the run that was never stopped; with
another vocabulary the same numbers would mean other words. So a difference is named, and refused unless it is accepted.
"""

from __future__ import annotations

import platform
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
import xxhash

from descend.engine.hardware import find_device, name_device
from descend.errors import Mistake
from descend.native.build import library

Fingerprint = dict[str, dict[str, str]]
LISTED = 1000  # files that are kept one by one
SHOWN = 3  # changes that are named
BLOCK = 2**22  # bytes read at once
THREADS = 8


def take_fingerprint(
    files: Mapping[str, Path], save_extra: Callable[[Path], None] | None, packages: tuple[str, ...]
) -> Fingerprint:
    """Of a run that is about to start or to continue; the environment is added when a checkpoint is written."""
    return {
        "data": digest_files(files),
        "saved": digest_saved(save_extra) if save_extra else {},
        "packages": {name: platform.python_version() if name == "python" else version(name) for name in packages},
    }


def digest_files(files: Mapping[str, Path]) -> dict[str, str]:
    """Name -> "bytes digest" of each file; of more than `LISTED`, folder -> "bytes digest" of all that lie in it."""
    with ThreadPoolExecutor(THREADS) as threads:
        found = dict(zip(files, threads.map(digest_file, files.values()), strict=True))
    if len(found) <= LISTED:
        return found
    folders: dict[str, list[str]] = defaultdict(list)
    for name in sorted(found):
        folders[name.rpartition("/")[0] + "/"].append(f"{name} {found[name]}")
    groups = folders if len(folders) <= LISTED else {"./": [line for lines in folders.values() for line in lines]}
    return {name: _digest_lines(lines) for name, lines in groups.items()}


def _digest_lines(lines: list[str]) -> str:
    """Of lines "name bytes digest": the sum of the bytes, and a digest of all."""
    size = sum(int(line.split(" ")[-2]) for line in lines)
    return f"{size} {xxhash.xxh3_128_hexdigest(chr(10).join(lines).encode(errors='surrogateescape'))}"


def digest_file(path: Path) -> str:
    """Size and content."""
    digest, size = xxhash.xxh3_128(), 0
    try:
        with path.open("rb", buffering=0) as file:
            block = memoryview(bytearray(min(BLOCK, path.stat().st_size + 1)))
            while n := file.readinto(block):
                digest.update(block[:n])
                size += n
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {error.strerror}") from None
    return f"{size} {digest.hexdigest()}"


def digest_saved(save_extra: Callable[[Path], None]) -> dict[str, str]:
    """What is saved beside the model."""
    with tempfile.TemporaryDirectory() as folder:
        save_extra(Path(folder))
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): digest_file(path) for path in files}


def describe_software(processes: int, native: bool = False, device: torch.device | None = None) -> dict[str, str]:
    """What rounding may depend on. Compiled code counts once it was asked for, or where `native` says that it was."""
    found = {
        "descend": descend_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
        "device": name_device(device or find_device()),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": str(torch.get_num_threads()),
        "processes": str(processes),
    }
    if native or library.cache_info().currsize:
        found["native code"] = "on" if library() else "off"
    return found


@cache
def descend_version() -> str:
    return version("descend")


def find_changes(before: Fingerprint, now: Fingerprint) -> list[str]:
    """Every difference, in words; what one of the two does not know is none."""
    files = [
        f"{name} {difference}" for name, difference in _compare(before.get("data", {}), now.get("data", {})).items()
    ]
    made = _compare(before.get("saved", {}), now.get("saved", {}))
    saved = [f"{name}, made from the data, {difference}" for name, difference in made.items()]
    known = [(before.get(part, {}), now.get(part, {})) for part in ("packages", "environment")]
    software = [f"{k} was {a[k]}, is {b[k]}" for a, b in known for k in a if k in b and a[k] != b[k]]
    return [*files, *saved, *software]


def _compare(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Name -> how it differs: "has changed (10 bytes, now 12)", "is gone", "is new"."""
    found = {}
    for name, value in before.items():
        if name not in now:
            found[name] = "is gone"
        elif now[name] != value:
            old, new = (int(x.split(" ")[0]) for x in (value, now[name]))
            sizes = f"{old:,} bytes, now {new:,}" if old != new else "the same size, other content"
            found[name] = f"has changed ({sizes})"
    return found | dict.fromkeys(now.keys() - before.keys(), "is new")


def format_changes(changes: list[str]) -> str:
    """The first of them, and how many more there are."""
    more = f"; and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
    return "; ".join(changes[:SHOWN]) + more
