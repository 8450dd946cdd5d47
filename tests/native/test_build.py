"""The library compiles its C++ once, and does without it where there is no compiler."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from descend.models.gpt2 import GPT2, TINY
from descend.native.build import library


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache folder, as on another machine; the library of this one is back afterwards."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("DESCEND_NATIVE", raising=False)
    library.cache_clear()
    yield tmp_path
    library.cache_clear()


def decodes() -> bool:
    decoder = GPT2(TINY).decoder()
    decoder.start(torch.tensor([[1, 2]]), torch.zeros(1, dtype=torch.long), 4)
    return bool(decoder.step(torch.tensor([3])).isfinite().all())


@pytest.mark.skipif(not (shutil.which("c++") or shutil.which("g++")), reason="there is no C++ compiler here")
def test_compiled_once(cache: Path) -> None:
    assert library() is not None
    assert decodes()
    (made,) = (cache / "descend").glob("*.so")
    before = made.stat().st_mtime_ns
    library.cache_clear()  # as in the next process
    assert library() is not None
    assert [p.stat().st_mtime_ns for p in (cache / "descend").iterdir()] == [before]


@pytest.mark.parametrize("environment", [{"PATH": "", "CXX": "none"}, {"DESCEND_NATIVE": "0"}])
def test_without_a_compiler(cache: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert library() is None
    assert decodes()


def test_a_folder_that_cannot_be_written(cache: Path) -> None:
    (cache / "descend").write_text("a file where the folder should be", encoding="utf-8")
    assert library() is None
    assert decodes()
