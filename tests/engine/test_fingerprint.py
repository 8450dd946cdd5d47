"""What a run depends on: its files by content, what was made of them, the environment; each change in words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from descend.engine import fingerprint
from descend.engine.fingerprint import (
    describe_software,
    digest_files,
    digest_saved,
    find_changes,
    format_changes,
    take_fingerprint,
)  # fmt: skip
from descend.engine.fit import fit
from descend.engine.progress import Quiet
from descend.engine.run import Run
from descend.engine.state import pack, unpack
from descend.errors import Mistake
from tests.engine.small import small


def write(folder: Path, **files: str) -> dict[str, Path]:
    for name, text in files.items():
        (folder / name).write_text(text)
    return {name: folder / name for name in files}


def test_a_file_is_its_content(tmp_path: Path) -> None:
    files = write(tmp_path, a="one", b="two")
    before = {"data": digest_files(files)}
    (tmp_path / "a").touch()
    assert not find_changes(before, {"data": digest_files(files)})
    write(tmp_path, a="One")
    assert find_changes(before, {"data": digest_files(files)}) == ["a has changed (the same size, other content)"]
    write(tmp_path, a="longer", c="new")
    now = digest_files({"a": tmp_path / "a", "c": tmp_path / "c"})
    assert find_changes(before, {"data": now}) == ["a has changed (3 bytes, now 6)", "b is gone", "c is new"]


@pytest.mark.parametrize("size", [0, 1, 7, 64, 1000])
def test_blocks_make_no_difference(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(i % 251 for i in range(size)))
    whole = fingerprint.digest_file(path)
    monkeypatch.setattr(fingerprint, "BLOCK", 7)
    assert fingerprint.digest_file(path) == whole
    assert whole.startswith(f"{size} ")


def test_many_files_are_kept_by_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "LISTED", 3)
    files = write(tmp_path, **{f"f{i}": str(i) for i in range(6)})
    named = {f"{'ab'[i % 2]}/{name}": path for i, (name, path) in enumerate(files.items())}
    before = digest_files(named)
    assert sorted(before) == ["a/", "b/"]
    write(tmp_path, f1="x")
    changed = find_changes({"data": before}, {"data": digest_files(named)})
    assert changed == ["b/ has changed (the same size, other content)"]
    assert list(digest_files({f"{i}/{name}": path for i, (name, path) in enumerate(files.items())})) == ["./"]


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"gone\.txt cannot be read"):
        digest_files({"gone.txt": tmp_path / "gone.txt"})


def test_what_goes_with_the_model_counts(tmp_path: Path) -> None:
    save = lambda vocabulary: lambda folder: (folder / "tokenizer.json").write_text(vocabulary)
    before, now = ({"saved": digest_saved(save(v))} for v in ("ab", "abc"))
    assert find_changes(before, now) == ["tokenizer.json, made from the data, has changed (2 bytes, now 3)"]


def test_the_environment_counts() -> None:
    before = {"environment": describe_software(1), "packages": {"scikit-learn": "1.0"}}
    assert not find_changes(before, before)
    now = {"environment": {**describe_software(2), "torch": "3.0"}, "packages": {"scikit-learn": "2.0"}}
    found = find_changes(before, now)
    assert "processes was 1, is 2" in found
    assert "scikit-learn was 1.0, is 2.0" in found
    assert any(change.startswith("torch was ") and change.endswith(", is 3.0") for change in found)
    del now["environment"]["torch"]  # what one of them does not know is no change
    assert not [change for change in find_changes(before, now) if change.startswith("torch")]


def test_compiled_code_counts_where_it_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert describe_software(1, native=True)["native code"] in ("on", "off")
    gone = lambda: None
    gone.cache_info = lambda: Count(0)  # type: ignore[attr-defined]
    monkeypatch.setattr(fingerprint, "library", gone)
    assert "native code" not in describe_software(1)
    assert describe_software(1, native=True)["native code"] == "off"


class Count:
    def __init__(self, currsize: int):
        self.currsize = currsize


def test_a_few_changes_are_shown() -> None:
    assert format_changes(["a", "b", "c"]) == "a; b; c"
    assert format_changes(list("abcde")) == "a; b; c; and 2 more"


def test_it_survives_a_checkpoint(tmp_path: Path) -> None:
    taken = take_fingerprint(write(tmp_path, a="one"), None, ("numpy", "python"))
    assert unpack(json.loads(json.dumps(pack(taken, {}))), {}) == taken


class Said(Quiet):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def message(self, text: str) -> None:
        self.lines.append(text)


def test_a_run_without_one_resumes_and_says_so(tmp_path: Path) -> None:
    """As the last release wrote it."""
    recipe = small(tmp_path, steps=3)
    run = Run.create(tmp_path / "run", {"name": "small"})
    fit(recipe.build(), recipe.loop, recipe.schedule, run, Quiet())
    longer, said = small(tmp_path, steps=4), Said()
    parts = replace(longer.build(), fingerprint=take_fingerprint(longer.files(), None, ()))
    fit(parts, longer.loop, longer.schedule, Run(run.folder), said, resume=True)
    assert [line for line in said.lines if "whether its data have changed cannot be known" in line]
