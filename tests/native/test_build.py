"""The library compiles its C++ once, and does without it where there is no compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import torch
from descend.models.gpt2 import GPT2, TINY
from descend.native.build import library
decoder = GPT2(TINY).decoder()
decoder.start(torch.tensor([[1, 2]]), torch.zeros(1, dtype=torch.long), 4)
print(library() is not None, decoder.step(torch.tensor([3])).isfinite().all().item())
"""


def run(cache: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, "XDG_CACHE_HOME": str(cache), **environment},
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.skipif(not (shutil.which("c++") or shutil.which("g++")), reason="there is no C++ compiler here")
def test_compiled_once(tmp_path: Path) -> None:
    assert run(tmp_path) == "True True"
    (made,) = (tmp_path / "descend").glob("*.so")
    before = made.stat().st_mtime_ns
    assert run(tmp_path) == "True True"
    assert [p.stat().st_mtime_ns for p in (tmp_path / "descend").iterdir()] == [before]


def test_without_a_compiler(tmp_path: Path) -> None:
    assert run(tmp_path, PATH=str(tmp_path), CXX="none") == "False True"
    assert run(tmp_path, DESCEND_NATIVE="0") == "False True"


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "descend").write_text("a file where the folder should be", encoding="utf-8")
    assert run(tmp_path) == "False True"
