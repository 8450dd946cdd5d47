"""Who opens a checkpoint gets the bits that were written, or is told which are not."""

from __future__ import annotations

import random
import shutil
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from descend import models
from descend.errors import Mistake
from descend.models import load
from descend.models.mlp import MLP, TINY
from descend.weights import digests
from descend.weights.digests import Damaged, verify_model, write_digests

SEED = 0


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with two checkpoints of the same model, of which the newer one is best."""
    for step in (1, 2):
        folder = tmp_path / "run" / "checkpoints" / f"step-00000{step}"
        MLP(TINY).save_pretrained(folder)
        (folder / "state.json").write_text('{"step": 2, "tree": {"$dict": [["best_step", 2]]}}')
        with ThreadPoolExecutor(2) as threads:
            write_digests(folder, threads)
    return tmp_path / "run"


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at // 8] ^= 1 << at % 8
    path.write_bytes(content)


def test_every_flipped_bit_is_refused(run: Path) -> None:
    """In the weights and in the config; 40 of 40."""
    draw = random.Random(SEED)
    for name in ("model.safetensors", "config.json"):
        path = run / "checkpoints" / "step-000002" / name
        for _ in range(20):
            at = draw.randrange(8 * path.stat().st_size)
            flip(path, at)
            for which in ("best", "last", 2):
                with pytest.raises(Mistake, match=rf"{name}.*altered.*--checkpoint 1\), or train on: descend resume"):
                    load(run, which)
            flip(path, at)
    assert not load(run).training
    assert not load(run, 1).training


def test_a_flipped_bit_is_named_to_the_tensor(run: Path) -> None:
    path = run / "checkpoints" / "step-000002" / "model.safetensors"
    flip(path, 8 * path.stat().st_size - 3)
    with pytest.raises(Damaged, match=r"model.safetensors: tensor '[\w.]+' does not have its checksum"):
        verify_model(path.parent)


def test_one_checkpoint_on_its_own(run: Path, tmp_path: Path) -> None:
    """The way out is another copy, or to take it as it is: without checksums it is a folder as any other."""
    folder = Path(shutil.copytree(run / "checkpoints" / "step-000002", tmp_path / "copy"))
    (folder / "config.json").write_text((folder / "config.json").read_text() + "\n")
    with pytest.raises(Mistake, match=r"delete .*checksums.json"):
        load(folder)
    (folder / "checksums.json").unlink()
    load(folder)


def test_what_a_model_does_not_need_is_not_read(run: Path) -> None:
    (run / "checkpoints" / "step-000002" / "state.json").write_text(
        '{"step": 2, "tree": {"$dict": [["best_step", 1]]}}'
    )
    verify_model(run / "checkpoints" / "step-000002")


def test_a_file_is_read_once_until_it_changes(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, read = run / "checkpoints" / "step-000002", list[str]()
    verify_file = digests._verify_file

    def note(path: Path, entry: dict[str, Any], threads: Executor) -> dict[str, Tensor]:
        read.append(path.name)
        return verify_file(path, entry, threads)

    monkeypatch.setattr(digests, "_verify_file", note)
    verify_model(folder)
    verify_model(folder)
    assert read == ["config.json", "model.safetensors"]
    flip(folder / "config.json", 8)
    with pytest.raises(Damaged):
        verify_model(folder)
    assert read == ["config.json", "model.safetensors", "config.json"]


@pytest.mark.parametrize("content", ["", "[]", "{}x", '{"format": 2}', '{"format": 2, "files": {"a": 1}, "digest": ""}',
                                     '{"config.json": 7}', '{"format": 3, "files": {}, "digest": ""}'])  # fmt: skip
def test_a_damaged_list_is_named(content: str, run: Path) -> None:
    path = run / "checkpoints" / "step-000002" / "checksums.json"
    path.write_text(content)
    with pytest.raises(Damaged, match=r"checksums.json"):
        verify_model(path.parent)


def test_a_checkpoint_that_is_pruned_meanwhile_is_looked_up_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in training may replace its best checkpoint while another process opens it."""
    resolve, asked = models.model_folder, list[str]()

    def resolve_and_prune(*given: object) -> Path:
        found = resolve(*given)  # type: ignore[arg-type]
        asked.append(found.name)
        if len(asked) == 1:
            shutil.rmtree(found)
        return found

    monkeypatch.setattr(models, "model_folder", resolve_and_prune)
    load(run, "last")
    assert asked == ["step-000002", "step-000001"]
