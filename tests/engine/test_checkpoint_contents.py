"""What a checkpoint holds: each tensor once, and what older releases wrote is still read."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from descend import models
from descend.engine import checkpoint
from descend.engine.fit import fit
from descend.engine.progress import Quiet
from descend.engine.run import Run
from descend.errors import Mistake
from descend.weights.checkpoints import resolve_checkpoint
from tests.engine.small import small
from tests.engine.test_checkpoint import flip_bit

FIRST_FORMAT = Path(__file__).parent / "data" / "format-1"  # whole files by SHA-256, and the weights twice


@pytest.mark.parametrize("ema", [0.0, 0.9], ids=["plain", "ema"])
def test_each_tensor_is_on_disk_once(ema: float, tmp_path: Path) -> None:
    """GPT-2's public matrices are transposed; the average is what is published when there is one."""
    recipe = small(tmp_path, steps=3, ema=ema)
    recipe = replace(recipe, model=replace(recipe.model, width=64))  # type: ignore[attr-defined]
    run = Run.create(tmp_path / "run", {"name": "small"})
    parts = recipe.build()
    fit(parts, recipe.loop, recipe.schedule, run, Quiet())
    path = resolve_checkpoint(run.folder, "last")
    model, rest = (sum(x.nbytes for x in load_file(path / f).values()) for f in ("model.safetensors", checkpoint.STATE))
    assert rest < (3.15 if ema else 2.15) * model  # two moments, and the weights themselves beside their average
    _, state = checkpoint.load(path)
    for name, tensor in parts.task.state_dict().items():
        assert torch.equal(state["task"][name], tensor), name


def test_load_opens_the_best_unless_told_otherwise(tmp_path: Path) -> None:
    recipe = small(tmp_path, steps=6, eval_every=2, save_every=2, watch="max loss")  # the first is the worst: the best
    run = Run.create(tmp_path / "run", {"name": "small"})
    result = fit(recipe.build(), recipe.loop, recipe.schedule, run, Quiet())
    assert result.best_step == 2
    weights = {which: models.load(run.folder, which).state_dict()["wte.weight"] for which in ("best", "last", 2, "6")}
    assert torch.equal(models.load(run.folder).state_dict()["wte.weight"], weights["best"])
    assert torch.equal(weights["best"], weights[2])
    assert torch.equal(weights["last"], weights["6"])
    assert not torch.equal(weights["best"], weights["last"])
    with pytest.raises(Mistake, match=r"no checkpoint '3'; there are: best \(step-000002\), last \(step-000006\)"):
        models.load(run.folder, 3)


def test_checkpoints_of_the_first_format_are_read(tmp_path: Path) -> None:
    path = resolve_checkpoint(FIRST_FORMAT, "best")
    step, state = checkpoint.load(path)
    assert (path.name, step, state["best_step"]) == ("step-000003", 3, 3)
    stored = load_file(path / "state.safetensors")
    assert all(torch.equal(state["task"][name], stored[f"/task/{name}"]) for name in state["task"])
    model = models.load(FIRST_FORMAT)
    assert all(torch.equal(x, state["task"][f"model.{name}"]) for name, x in model.state_dict().items())
    recipe = small(tmp_path, steps=6)
    recipe = replace(recipe, model=replace(recipe.model, width=4, depth=1, heads=1))  # type: ignore[attr-defined]
    shutil.copytree(FIRST_FORMAT, tmp_path / "run")
    result = fit(recipe.build(), recipe.loop, recipe.schedule, Run(tmp_path / "run"), Quiet(), resume=True)
    assert (result.reason, result.step) == ("finished", 6)


@pytest.mark.parametrize("file", ["state.safetensors", "model.safetensors", "state.json", "config.json"])
def test_damage_in_the_first_format_is_found(file: str, tmp_path: Path) -> None:
    shutil.copytree(FIRST_FORMAT, tmp_path / "run")
    path = resolve_checkpoint(tmp_path / "run", "last")
    flip_bit(path / file)
    with pytest.raises(checkpoint.Damaged, match=file):
        checkpoint.load(path)
