"""The library's C++, compiled once for this machine when it is first needed, in a few seconds.

Without a compiler, or with DESCEND_NATIVE=0 in the environment, everything works without it, only slower.

    CACHE/native-BUILD-DIGEST.so     BUILD: of source, compiler and processor        DIGEST: of the file's content

Code is loaded only from a file with that content, in a folder of this user (or of root) to which nobody else may write.
What is damaged or could be another's is said and compiled again; where the user's cache folder is unfit, or there is no
home folder, in a private folder for temporary files.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

SOURCES = sorted(Path(__file__).parent.glob("*.cpp"))
HEADERS = sorted(Path(__file__).parent.glob("*.h"))
FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-std=c++17")
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@cache
def library() -> ctypes.CDLL | None:
    """The compiled functions, or None where they cannot be had."""
    compiler = shutil.which(os.environ.get("CXX", "c++")) or shutil.which("g++")
    if compiler is None or os.environ.get("DESCEND_NATIVE") == "0":
        return None
    try:
        build = name_build(compiler)
        for folder in dict.fromkeys((cache_folder(), private_folder())):
            if is_ready(folder):
                return ctypes.CDLL(str(find_build(folder, build) or compile_in(folder, build, compiler)))
    except (OSError, subprocess.SubprocessError) as error:
        say(f"the compiled code cannot be had ({error}); everything works without it, only slower")
    return None


def cache_folder() -> Path:
    """Where what can be found out again is kept; without a home folder, among temporary files."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "descend"
    except RuntimeError:
        return private_folder()


def private_folder() -> Path:
    """This user's folder among temporary files."""
    return Path(tempfile.gettempdir()) / f"descend-{os.getuid()}"


def is_ready(folder: Path) -> bool:
    """Whether compiled code may be kept in a folder, which is made if it is not there; if not, why is said."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        wrong = find_stranger(folder)
    except OSError as error:
        wrong = f"{folder} cannot be used ({error.strerror})"
    if wrong:
        say(f"{wrong}, so no compiled code is kept there")
    return not wrong


def find_stranger(path: Path) -> str:
    """Who else could have written a file or folder; nothing when nobody could."""
    found = path.stat()
    if found.st_uid not in (os.getuid(), 0):
        return f"{path} belongs to another user (number {found.st_uid})"
    if found.st_mode & OTHERS_WRITE:
        return f"{path} can be written by others (mode {stat.S_IMODE(found.st_mode):o}; chmod go-w)"
    return ""


def find_build(folder: Path, build: str) -> Path | None:
    """The compiled file of this build, if it is what was compiled; what is not is removed."""
    for path in sorted(folder.glob(f"native-{build}-*.so")):
        wrong = find_stranger(path)
        if not wrong and digest_file(path) != path.stem.rpartition("-")[2]:
            wrong = f"{path} was damaged"
        if not wrong:
            return path
        say(f"{wrong}; it is compiled again")
        path.unlink()
    return None


def digest_file(path: Path) -> str:
    """The part of a name that tells a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def say(line: str) -> None:
    print(f"descend: {line}", file=sys.stderr)


def name_build(compiler: str) -> str:
    """Of what the compiled file depends on: a home folder may be shared by different machines."""
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    sources = [path.read_text(encoding="utf-8") for path in (*SOURCES, *HEADERS)]
    parts = [*sources, version, *FLAGS, platform.machine(), read_processor()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def read_processor() -> str:
    """Its instructions, where the system tells."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else [platform.processor()]
    return next((line for line in lines if line.startswith(("flags", "Features"))), lines[0] if lines else "")


def compile_in(folder: Path, build: str, compiler: str) -> Path:
    """Written aside and renamed: another process never loads half a file."""
    with tempfile.TemporaryDirectory(dir=folder) as aside:
        made = Path(aside) / "native.so"
        command = [compiler, *FLAGS, *map(str, SOURCES), "-o", str(made)]
        subprocess.run(command, capture_output=True, timeout=600, check=True)
        made.chmod(0o700)
        path = folder / f"native-{build}-{digest_file(made)}.so"
        made.rename(path)
    return path
