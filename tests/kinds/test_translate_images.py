"""Translations as recipes: batches, scores by the true map, a few steps of learning, and mistakes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from PIL import Image

from descend import models, recipes
from descend.engine.evaluation import score_set
from descend.errors import Mistake
from descend.kinds.translate_images import ScenePairs
from descend.optim.schedules import Constant
from tests.engine.small import train, training


def short(name: str, **changes: Any) -> Any:
    recipe: Any = recipes.get(name)
    loop = replace(recipe.loop, steps=4, batch=8, eval_every=2, save_every=2, threads=1)
    return replace(recipe, loop=loop, data=replace(recipe.data, count=64, valid=32, test=16), **changes)


@pytest.mark.system("pix2pix")
def test_pairs_belong_together_and_unpaired_images_do_not() -> None:
    batch = next(short("pix2pix-scenes").build().stream)
    label, image = batch["source"], batch["x"]
    inside = (label > -1).any(dim=1)  # labels are black outside the object
    change = (image - image.mean(dim=(2, 3), keepdim=True)).abs().mean(dim=1)
    assert change[inside].mean() > 1.5 * change[~inside].mean()  # the object is there in both
    unpaired = next(short("cyclegan-scenes").build().stream)
    assert set(unpaired) >= {"x", "y"}
    assert (unpaired["x"] - unpaired["y"]).abs().mean() > 0.2


def test_the_judge_knows_the_true_map() -> None:
    recipe = short("cyclegan-scenes")
    parts = recipe.build()
    (batch,) = parts.valid
    assert float(parts.task.quality(batch["y"], batch)["recovered"].mean()) == 1
    assert float(parts.task.quality(batch["x"], batch)["recovered"].mean()) == 0
    assert set(score_set(parts.task, parts.valid)) == {"cycle", "recovered"}
    assert len(next(iter(recipe.test()))["x"]) == 16
    assert "34×34" in parts.facts["a score of the discriminator sees"]


@pytest.mark.system("pix2pix")
def test_l1_falls_within_a_few_steps() -> None:
    run = training(short("pix2pix-scenes", schedule=Constant()))
    before = run.evaluate()["l1"]
    for _ in range(25):
        told = run.advance()
    assert run.evaluate()["l1"] < 0.95 * before
    assert {"loss_g_l1", "loss_g_loss", "loss_d_real"} <= set(told)


@pytest.mark.system("cyclegan")
def test_the_cycle_error_falls_within_a_few_steps() -> None:
    recipe = short("cyclegan-scenes", schedule=Constant())
    run = training(replace(recipe, model=replace(recipe.model, width=8, blocks=1)))
    before = run.evaluate()["cycle"]
    for _ in range(25):
        run.advance()
    assert run.evaluate()["cycle"] < 0.9 * before


@pytest.mark.parametrize("name", ["pix2pix-scenes", "cyclegan-scenes"])
def test_a_run_is_saved_opened_and_shown(name: str, tmp_path: Any) -> None:
    recipe = short(name)
    run = train(recipe, tmp_path / "run")
    model: Any = models.load(run.folder)
    x = torch.zeros(1, 3, recipe.data.side, recipe.data.side)
    translate = model if name.startswith("pix2pix") else model.y
    with torch.no_grad():
        assert translate(x).shape == x.shape
    (shown,) = recipe.build().exhibits()
    assert shown.title == "Translations"
    assert len(shown.content["images"]) == len(shown.content["captions"])


@pytest.mark.parametrize("name", ["pix2pix-scenes", "cyclegan-scenes"])
def test_images_of_ones_own(name: str, tmp_path: Any) -> None:
    for folder, value in (("source", 50), ("target", 150)):
        (tmp_path / folder).mkdir()
        for i in range(20):
            Image.new("RGB", (20 + i, 20), (value + i, 0, 0)).save(tmp_path / folder / f"{i}.png")
    recipe = short(name)
    watch = "min l1" if name.startswith("pix2pix") else "min cycle"
    data = replace(recipe.data, path=str(tmp_path))
    recipe = replace(recipe, data=data, loop=replace(recipe.loop, batch=4, watch=watch))
    run = training(recipe)
    run.advance()
    assert set(run.evaluate()) == {watch.split()[1]}
    assert run.parts.facts["training images"] == 16
    assert len(next(iter(recipe.test()))["x"]) == 2
    assert recipe.build().exhibits()


def test_mistakes() -> None:
    wrong = short("pix2pix-scenes")
    with pytest.raises(Mistake, match=r"24×24: images of 24×24: sides must be multiples of 16"):
        replace(wrong, data=ScenePairs(side=24, count=8)).build()
    with pytest.raises(Mistake, match=r"--r1 .* --patches.norm instance"):
        short("cyclegan-scenes", patches=replace(wrong.patches, norm="batch"), r1=1.0).build()
    deep = short("cyclegan-scenes", patches=replace(wrong.patches, depth=4), r1=0.0)
    with pytest.raises(Mistake, match="for images of 8×8"):
        replace(deep, data=ScenePairs(side=8, count=8)).build()
