"""File operations below a folder, counted one by one, with something done before each: an error, a crash, nothing.

    open, mkdir, rename, remove, rmdir, symlink, link, listdir, flock     seen by Python's audit events
    write, fsync                                                          seen by what `watch_operations` puts in place

What is put in place stays: call it in a process that was forked for the purpose.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOOKS = ("os.listdir", "os.scandir")  # operations that change nothing; so does `open` without a flag that writes
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.truncate", "fcntl.flock")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True)
class Operation:
    """One operation: its name, the path, and whether it changes anything."""

    name: str
    path: str
    changes: bool


Before = Callable[[Operation], None]


def watch_operations(root: Path, before: Before) -> None:
    """From now on `before` is called before each operation below `root`; it may raise, or end the process."""
    root = root.resolve()
    os.chdir(root)  # names that are relative to an open folder look relative to this one
    guard = threading.local()

    def tell(name: str, path: str, changes: bool) -> None:
        if getattr(guard, "busy", False) or not is_below(path, root):
            return
        guard.busy = True
        try:
            before(Operation(name, path, changes))
        finally:
            guard.busy = False

    def audit(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and not isinstance(args[0], int):
            path, writes = as_text(args[0]), bool((args[2] or 0) & WRITES)
            if os.path.isabs(path) or writes or (root / path).exists():  # not a name in some other open folder
                tell(event, path, writes)
        elif event in LOOKS or event in CHANGES:
            tell(event, find_path(event, args), event in CHANGES)

    sys.addaudithook(audit)
    replace_fsync(tell)
    replace_open(tell, root)


def find_path(event: str, args: tuple[Any, ...]) -> str:
    """What an event changes; a name in an open folder is put behind that folder's path."""
    path = as_text(args[1] if event == "os.symlink" else args[0])
    inside = args[1] if event in ("os.remove", "os.rmdir") else -1
    return path if inside in (-1, None) else os.path.join(as_text(inside), path)


def as_text(path: Any) -> str:
    """The path of an event; that of an open folder or file is asked of the system."""
    if isinstance(path, int):
        return os.readlink(f"/proc/self/fd/{path}")
    return os.fsdecode(path) if path is not None else "."


def is_below(path: str, root: Path) -> bool:
    return not os.path.isabs(path) or Path(path).is_relative_to(root)


def replace_fsync(tell: Callable[[str, str, bool], None]) -> None:
    original = os.fsync

    def fsync(handle: Any) -> None:
        tell("os.fsync", as_text(handle if isinstance(handle, int) else handle.fileno()), True)
        original(handle)

    os.fsync = fsync


def replace_open(tell: Callable[[str, str, bool], None], root: Path) -> None:
    """`open` for writing gives files that tell of each write as it reaches the system."""
    original = io.open

    class Told(io.FileIO):
        def write(self, content: Any) -> int:
            tell("write", as_text(self.fileno()), True)
            return super().write(content)

    def open_told(file: Any, mode: str = "r", buffering: int = -1, *rest: Any, **named: Any) -> Any:
        if isinstance(file, int) or not set(mode) & set("wax+") or not is_below(as_text(file), root):
            return original(file, mode, buffering, *rest, **named)
        raw = Told(file, mode.replace("b", "").replace("t", ""))
        if not buffering:
            return raw
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, *rest, **named)

    builtins.open = io.open = open_told
