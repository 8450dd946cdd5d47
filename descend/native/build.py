"""The library's C++, compiled once for this machine when it is first needed, in a few seconds.

Without a compiler, or with DESCEND_NATIVE=0 in the environment, everything works without it, only slower. The compiled
file lives in the user's cache folder, under a name made of the source, the compiler and the processor.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

SOURCES = sorted(Path(__file__).parent.glob("*.cpp"))
HEADERS = sorted(Path(__file__).parent.glob("*.h"))
FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-std=c++17")


@cache
def library() -> ctypes.CDLL | None:
    """The compiled functions, or None where they cannot be had."""
    compiler = shutil.which(os.environ.get("CXX", "c++")) or shutil.which("g++")
    if compiler is None or os.environ.get("DESCEND_NATIVE") == "0":
        return None
    try:
        path = cache_folder() / f"native-{name_build(compiler)}.so"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            compile_to(path, compiler)
        return ctypes.CDLL(str(path))
    except (OSError, subprocess.SubprocessError):
        return None


def cache_folder() -> Path:
    """Where what can be found out again is kept; only this user can write there."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "descend"


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


def compile_to(path: Path, compiler: str) -> None:
    """Written aside and renamed: another process never loads half a file."""
    with tempfile.TemporaryDirectory(dir=path.parent) as aside:
        made = Path(aside) / path.name
        command = [compiler, *FLAGS, *map(str, SOURCES), "-o", str(made)]
        subprocess.run(command, capture_output=True, timeout=120, check=True)
        made.rename(path)
