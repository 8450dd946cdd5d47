"""The library compiles its C++ once, and does without it where there is no compiler."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from descend.models.gpt2 import GPT2, TINY
from descend.native import build
from descend.native.build import library
from tests.other_user import AS_ROOT, NOBODY, SOMEBODY, call_as, open_folders

COMPILER = pytest.mark.skipif(not (shutil.which("c++") or shutil.which("g++")), reason="there is no C++ compiler here")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache folder, as on another machine; the library of this one is back afterwards."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.delenv("DESCEND_NATIVE", raising=False)
    library.cache_clear()
    yield tmp_path
    library.cache_clear()


def decodes() -> bool:
    decoder = GPT2(TINY).decoder()
    decoder.start(torch.tensor([[1, 2]]), torch.zeros(1, dtype=torch.long), 4)
    return bool(decoder.step(torch.tensor([3])).isfinite().all())


@COMPILER
def test_compiled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not optimised, which takes most of the time: what the other tests call has been compiled as users have it."""
    monkeypatch.setattr(build, "FLAGS", tuple(flag for flag in build.FLAGS if flag != "-O3"))
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


@pytest.fixture
def quick(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache, and a compiler that copies a file which no system can load; it is only looked for."""
    monkeypatch.setattr(build, "name_build", lambda compiler: "build")
    monkeypatch.setattr(ctypes, "CDLL", lambda path: Path(path))

    def compile_one(command: list[str], **_: object) -> None:
        Path(command[-1]).write_bytes(b"compiled")

    monkeypatch.setattr(subprocess, "run", compile_one)
    return cache


@COMPILER
def test_a_folder_that_cannot_be_written(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (quick / "descend").write_text("a file where the folder should be", encoding="utf-8")
    assert library().parent == build.private_folder()  # type: ignore[union-attr]
    assert "descend cannot be used" in capsys.readouterr().err
    assert stat.S_IMODE(build.private_folder().stat().st_mode) == 0o700


@COMPILER
@pytest.mark.parametrize("harm", ["damaged", "open file", "foreign file"])
def test_a_bad_file_is_compiled_again(
    quick: Path, harm: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = library()
    assert isinstance(path, Path)
    if harm == "damaged":
        path.write_bytes(b"compiles")
    elif harm == "open file":
        path.chmod(0o722)
    else:
        own(path, monkeypatch)
    library.cache_clear()
    assert library() == path
    assert path.read_bytes() == b"compiled"
    assert capsys.readouterr().err.count("; it is compiled again\n") == 1


@COMPILER
@pytest.mark.parametrize("harm", ["open", "foreign"])
def test_a_folder_of_strangers_is_not_used(
    quick: Path, harm: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = library()
    assert isinstance(path, Path)
    if harm == "open":
        path.parent.chmod(0o777)
    else:
        own(path.parent, monkeypatch)
    library.cache_clear()
    found = library()
    assert isinstance(found, Path)
    assert found.parent == build.private_folder()
    assert "no compiled code is kept there" in capsys.readouterr().err


@COMPILER
def test_without_a_home_folder(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    found = library()
    assert isinstance(found, Path)
    assert found.parent == build.private_folder() == build.cache_folder()


@COMPILER
def test_no_folder_at_all(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (quick / "descend", build.private_folder()):
        folder.write_text("a file where the folder should be", encoding="utf-8")
    assert library() is None


def own(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the path look as if it belonged to another user, until it is written anew."""
    stranger, real = path.stat().st_ino, Path.stat

    def look(self: Path, **more: bool) -> os.stat_result:
        found = real(self, **more)
        return os.stat_result((*found[:4], 4711, *found[5:10])) if found.st_ino == stranger else found

    monkeypatch.setattr(Path, "stat", look)


@AS_ROOT
def test_code_of_another_user_is_not_loaded(quick: Path) -> None:
    """Two real users: what root left may be used, what a third one left may not."""
    open_folders(quick)
    (quick / "temporary").chmod(0o1777)
    kept = quick / "descend"
    kept.mkdir()
    made = kept / f"native-build-{hashlib.sha256(b'compiled').hexdigest()[:16]}.so"
    made.write_bytes(b"compiled")
    log = quick / "log"

    def load() -> None:
        print(library())

    assert str(made) in call_as(NOBODY, load, log)[1], "root's"
    for path in (kept, made):
        os.chown(path, SOMEBODY, SOMEBODY)
    _, said = call_as(NOBODY, load, log)
    assert f"{kept} belongs to another user (number {SOMEBODY}), so no compiled code is kept there" in said
    assert f"descend-{NOBODY}/native-build-" in said
    library.cache_clear()
    assert library().parent == build.private_folder()  # type: ignore[union-attr]
