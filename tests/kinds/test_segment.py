"""Segmentation recipes: from scenes or a user's folder to a trained, saved and examined model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from sklearn.metrics import jaccard_score

import descend.models as models
from descend import recipes
from descend.data.images.labelled import Preprocessing
from descend.data.images.masks import VOID, Masks
from descend.data.images.pixels import to_pixels
from descend.data.images.warp import Warp
from descend.data.toys.scenes import SHAPES, scenes
from descend.engine.evaluation import score_set
from descend.kinds.segment import SegmentImages, class_shares, class_weights, fit_preprocessing
from descend.models.unet import UNetConfig
from descend.report.exhibits import make_section
from tests.close import close
from tests.engine.small import train, training

pytestmark = pytest.mark.system("semantic-segmentation-task")


def small(**changes: object) -> SegmentImages:
    """The recipe at a size for a test."""
    recipe: Any = recipes.get("unet-scenes")
    loop = replace(recipe.loop, steps=4, batch=4, eval_every=4, save_every=4, threads=1)
    made = replace(recipe, model=UNetConfig(width=4, depth=2, padding=1), data=Masks(scenes=40, side=24), loop=loop)
    return replace(made, **changes)


@pytest.mark.system("semantic-segmentation-task", "training")
def test_a_run_is_trained_saved_and_read_back(tmp_path: Path) -> None:
    recipe = small(dice=0.5, balance=0.5)
    folder = train(recipe, tmp_path / "run").checkpoints / "last"
    model, prepare = models.load(folder), Preprocessing.read(folder)
    assert prepare.labels == ("background", *SHAPES)
    assert model.config == UNetConfig(3, 1 + len(SHAPES), 4, 2, 1)
    part = recipe.data.read().test
    batch = next(iter(recipe.test()))
    with torch.no_grad():
        close(model(prepare(part.x.float() / 255)), model(batch["x"]))
    assert torch.equal(part.y, batch["y"])


@pytest.mark.system("semantic-segmentation-task", "own-folder")
def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    """Images and masks as a user has them; the classes' names arrive in the report."""
    made = scenes(12, 20, torch.Generator().manual_seed(0))
    for part in ("images", "masks"):
        (tmp_path / part).mkdir()
    for i in range(12):
        Image.fromarray(to_pixels(made.x[i])).save(tmp_path / "images" / f"{i:02}.png")
        Image.fromarray((made.mask[i] > 0).numpy().astype("uint8")).save(tmp_path / "masks" / f"{i:02}.png")
    (tmp_path / "classes.txt").write_text("ground\nthing\n")
    recipe = small(data=Masks(path=str(tmp_path), warp=Warp(shift=0.1)))
    run = training(recipe)
    assert run.parts.facts["data"] == str(tmp_path)
    assert run.parts.facts["classes"].startswith("ground ")
    run.advance()
    scores = run.evaluate()
    assert scores.keys() == {"loss", "accuracy", "mean_iou"}
    with torch.no_grad():
        worst, table, confusion = run.parts.exhibits()  # type: ignore[misc]
    assert [row[0] for row in table.content["rows"]] == confusion.content["labels"] == ["ground", "thing"]
    assert worst.content["captions"][0].split(":")[0] in {f"{i:02}" for i in range(12)}


@pytest.mark.system("semantic-segmentation-task", "training")
@torch.no_grad()
def test_exhibits_tell_the_sets_scores() -> None:
    recipe = small()
    parts = recipe.build()
    parts.task.eval()
    worst, table, confusion = parts.exhibits()  # type: ignore[misc]
    batch = next(iter(parts.valid))
    answers = parts.model(batch["x"]).argmax(1)
    a, b = batch["y"].flatten().numpy(), answers.flatten().numpy()
    theirs = jaccard_score(a, b, labels=range(7), average=None, zero_division=0)
    close(torch.tensor([row[1] for row in table.content["rows"]]).nan_to_num(), torch.tensor(theirs).float())
    assert sum(map(sum, confusion.content["counts"])) == a.size
    exact = score_set(parts.task, parts.valid)["mean_iou"]
    assert f"mean IoU {exact:.4f}" in table.note
    assert worst.content["images"].shape == (6, 3, 24, 24)  # all that there are
    for exhibit in (worst, table, confusion):
        assert "could not be drawn" not in make_section(exhibit)


def test_a_u_net_without_padding_learns_the_middle() -> None:
    recipe = small(model=UNetConfig(width=4, depth=1, padding=0))
    run = training(recipe)
    run.advance()
    with torch.no_grad():
        worst, *_ = run.parts.exhibits()  # type: ignore[misc]
    assert worst.content["images"].shape == (6, 3, 8, 8)
    assert worst.content["truth"].shape == (6, 8, 8)


def test_weights_and_statistics() -> None:
    splits = Masks(scenes=20, side=16).read()
    prepare = fit_preprocessing(splits)
    x = splits.train.x.double() / 255
    close(torch.tensor(prepare.mean), x.mean((0, 2, 3)).float())
    close(torch.tensor(prepare.std), x.std((0, 2, 3), correction=0).float())
    y = torch.tensor([[[0, 0, 0, 1], [1, 2, VOID, VOID]]])
    shares = class_shares(y, 4)
    close(shares, torch.tensor([3, 2, 1, 0]) / 6)
    weights = class_weights(shares, 1.0)
    close((weights * shares).sum(), torch.tensor(1.0))
    close(weights[:3] * shares[:3], torch.full((3,), 1 / 3))  # every class weighs as much as any other
    assert weights[3] == 1
    assert class_weights(shares, 0.0).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("name", ["unet-scenes", "fcn-scenes", "encdec-scenes"])
def test_the_recipes_fit_their_data(name: str) -> None:
    recipe: Any = recipes.get(name)
    run = training(replace(recipe, data=Masks(scenes=12, side=32), loop=replace(recipe.loop, batch=2)))
    assert run.advance()["loss"] > 0
    assert run.parts.model(torch.zeros(1, 3, 32, 32)).shape == (1, 7, 32, 32)
