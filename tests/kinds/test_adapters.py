"""Training below an adapter: from a run, to a checkpoint that holds the adapter alone, and back into an answerer."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

import descend
from descend import recipes
from descend.errors import Mistake
from descend.inference import open_run
from descend.inference.writer import Writer
from descend.kinds.adapters import Bottleneck, Lora, Prefix, SoftPrompt
from descend.kinds.changes import change
from descend.kinds.start_language import StartLanguage
from descend.models._adapted import AdaptedWriter
from descend.sampling.filters import GREEDY

SMALL = {"steps": 4, "batch": 4, "eval_every": 2, "save_every": 2, "data.count": 60, "data.held_out": 12}
MODEL = {"model.width": 32, "model.depth": 2, "model.hidden": 48}


def small(name: str, base: Path | None = None) -> Any:
    recipe = change(recipes.get(name), {**SMALL, **MODEL})
    if base is None:
        return recipe
    general = {"data.general.path": str(base.parent / "text.txt")}
    return change(replace(recipe, start=StartLanguage(path=str(base))), general)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("base") / "run"
    descend.train(small("instruct-tasks"), out=where, quiet=True)
    (where.parent / "text.txt").write_text("the cat sat on the mat . a dog ran over the hill . " * 40)
    return where


def digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def tensors(folder: Path) -> dict[str, set[str]]:
    found = {}
    for file in folder.rglob("*.safetensors"):
        with safe_open(file, "pt") as held:
            found[file.name] = set(held.keys())
    return found


@pytest.mark.system("lora", "frozen-base", "swap")
@pytest.mark.system("bottleneck-adapters", "frozen-base", "swap")
@pytest.mark.system("prefix-tuning", "only-the-prefix", "swap")
def test_a_run_saves_the_adapter_alone_and_opens_like_any_other(base: Path, tmp_path: Path) -> None:
    before = digest(base)
    shared: Any = None
    for adapter in (Lora(2), Bottleneck(2), SoftPrompt(2), Prefix(2)):
        name = type(adapter).__name__
        recipe = replace(small("lora-tasks", base), adapter=adapter)
        run, result = descend.train(recipe, out=tmp_path / name, quiet=True)
        assert result.step == 4
        held = tensors(run.checkpoints / "last")
        assert not any("embed.weight" in key or "model.base" in key for keys in held.values() for key in keys)
        assert sum(p.stat().st_size for p in (run.checkpoints / "last").rglob("*.safetensors")) < 60_000
        writer = open_run(tmp_path / name)
        assert isinstance(writer, Writer)
        assert isinstance(writer.trained.model, AdaptedWriter)
        assert "".join(writer.write("reverse abc", 4, GREEDY)) is not None
        assert run.report.path.exists()
        if shared is None:
            shared, tokens = writer.trained.model, torch.randint(20, (1, 6))
            first = shared(tokens)
        else:
            shared.load_adapter(name, run.checkpoints / "last")
            torch.testing.assert_close(shared(tokens), descend.load(run.checkpoints / "last")(tokens))
            shared.select("default")
            assert torch.equal(shared(tokens), first)
    assert digest(base) == before
    with pytest.raises(Mistake, match=r"there is no adapter 'Prefi'. Did you mean 'Prefix'"):
        shared.select("Prefi")


@pytest.mark.system("lora", "frozen-base")
def test_a_resume_is_exact_to_the_bit_also_with_an_average_of_the_weights(base: Path, tmp_path: Path) -> None:
    recipe = replace(small("lora-tasks", base), adapter=Lora(2, dropout=0.2))
    recipe = change(recipe, {"ema": 0.9})
    descend.train(recipe, out=tmp_path / "whole", quiet=True)
    shutil.copytree(tmp_path / "whole", tmp_path / "parts", symlinks=True)
    shutil.rmtree(tmp_path / "parts/checkpoints/step-000004")
    state = tmp_path / "parts/checkpoints/step-000002/state.safetensors"
    with safe_open(state, "pt") as held:
        assert not [key for key in held.keys() if "base" in key]  # noqa: SIM118
    descend.resume(tmp_path / "parts", quiet=True)
    whole, parts = (tmp_path / name / "checkpoints/step-000004" for name in ("whole", "parts"))
    for name in ("adapter_model.safetensors", "state.safetensors"):
        assert (whole / name).read_bytes() == (parts / name).read_bytes(), name


@pytest.mark.system("lora", "another-base")
def test_a_resume_on_another_base_is_refused(base: Path, tmp_path: Path) -> None:
    moved = tmp_path / "base"
    shutil.copytree(base, moved, symlinks=True)
    shutil.copy(base.parent / "text.txt", tmp_path)
    descend.train(small("lora-tasks", moved), out=tmp_path / "run", quiet=True)
    shutil.rmtree(tmp_path / "run/checkpoints/step-000004")
    other = change(small("instruct-tasks"), {"seed": 5})
    shutil.rmtree(moved)
    descend.train(other, out=moved, quiet=True)
    with pytest.raises(Mistake, match=r"model.base is not the one this run started with"):
        descend.resume(tmp_path / "run", quiet=True)


def test_run_and_base_can_be_moved_together(base: Path, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path / "here/base", symlinks=True)
    start = StartLanguage(path=str(tmp_path / "here/base"))
    descend.train(
        change(replace(small("lora-tasks"), start=start), {"steps": 2}), out=tmp_path / "here/run", quiet=True
    )
    (tmp_path / "here").rename(tmp_path / "there")
    assert descend.load(tmp_path / "there/run").source is not None
    said = json.loads((tmp_path / "there/run/checkpoints/last/base.json").read_text())
    assert not Path(said["folder"]).exists()


def test_without_a_base_the_random_one_is_kept_beside_the_adapter(tmp_path: Path) -> None:
    run, _ = descend.train(change(small("lora-tasks"), {"steps": 2}), out=tmp_path / "run", quiet=True)
    assert (run.checkpoints / "last/base/model.safetensors").exists()
    assert isinstance(descend.load(tmp_path / "run"), AdaptedWriter)


def test_an_adapter_on_an_adapted_model_is_refused(base: Path, tmp_path: Path) -> None:
    model = Lora(2).apply(descend.load(base))
    with pytest.raises(Mistake, match="has adapters already; merge them first"):
        Lora(2).apply(model)
    with pytest.raises(Mistake, match="there is no adapter 'two'"):
        model.select("two")
