"""CLIP's recipe: builds, learns a little, saves what transformers opens, shows what it found; files of one's own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from descend import recipes
from descend.data.images.captions import Captions
from descend.engine.distributed import World
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.contrastive import ContrastRecipe
from descend.models import load
from descend.report.exhibits import make_section
from tests.close import close


def small(**data: Any) -> ContrastRecipe:
    recipe = recipes.get("clip-vit-scenes")
    assert isinstance(recipe, ContrastRecipe)
    c = recipe.model
    model = replace(
        c,
        text=replace(c.text, width=16, depth=1, hidden=32),
        image=replace(c.image, width=16, depth=1, heads=2, hidden=32, patch=8),
        width=16,
    )
    return replace(recipe, model=model, data=Captions(size=16, count=96, **data), loop=replace(recipe.loop, batch=16))


@pytest.mark.system("clip")
@pytest.mark.system("clip", "recipe")
@pytest.mark.system("zero-shot-classification")
def test_generated_scenes(tmp_path: Path) -> None:
    recipe = small()
    parts = recipe.build()
    run = Training(parts, recipe.loop, recipe.schedule, World())
    for _ in range(3):
        run.advance()
    batch = next(iter(parts.valid))
    scores = parts.task.score(batch)
    assert set(scores) == {"loss", "recall", "zero_shot"}
    assert all(v.shape == (16,) for v in scores.values())
    tested = list(recipe.test())
    assert sum(len(b["y"]) for b in tested) == 64
    assert parts.facts["held out"].startswith("a red circle")
    drawn = parts.exhibits()  # type: ignore[misc]
    assert [e.kind for e in drawn] == ["heatmap", "images", "table"]
    assert not [e for e in drawn if "could not be drawn" in make_section(e)]


@pytest.mark.system("clip")
def test_what_is_saved_opens_in_transformers(tmp_path: Path) -> None:
    """The model, the tokenizer with its start and end, and the fields of the image processor."""
    transformers = pytest.importorskip("transformers")
    recipe = small()
    parts = recipe.build()
    parts.model.save_pretrained(tmp_path)
    parts.save_extra(tmp_path)  # type: ignore[misc]
    batch = next(iter(parts.valid))
    theirs = transformers.CLIPModel.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        expected = theirs(input_ids=batch["tokens"], pixel_values=batch["x"]).logits_per_image
        close(load(tmp_path)(batch["x"], batch["tokens"]), expected)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    captions = recipe.data.read().valid.captions[:16]
    found = tokenizer(captions, padding=True, return_tensors="pt").input_ids
    assert torch.equal(found, batch["tokens"][:, : found.shape[1]])
    values = json.loads((tmp_path / "preprocessor_config.json").read_text())
    assert values["image_processor_type"] == "CLIPImageProcessor"
    assert values["image_mean"] == values["image_std"] == [0.5, 0.5, 0.5]


@pytest.mark.system("clip")
@pytest.mark.system("clip", "recipe")
def test_pairs_of_ones_own(tmp_path: Path) -> None:
    """No classes then: the loss and recall are scored, nothing is named."""
    from PIL import Image

    lines = []
    for i in range(30):
        Image.new("RGB", (24, 18), (8 * i, 255 - 8 * i, 0)).save(tmp_path / f"{i}.png")
        lines.append(json.dumps({"image": f"{i}.png", "caption": f"a wall of colour {i}"}))
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines))
    recipe = small(path=str(tmp_path / "pairs.jsonl"))
    parts = recipe.build()
    assert set(parts.task.score(next(iter(parts.valid)))) == {"loss", "recall"}
    drawn = parts.exhibits()  # type: ignore[misc]
    assert not [e for e in drawn if "could not be drawn" in make_section(e)]
    assert [len(list(recipe.test())), parts.facts["held out"]] == [1, "nothing"]


def test_a_size_that_patches_do_not_tile() -> None:
    with pytest.raises(Mistake, match=r"--data\.size 20: a side of 20 is not a multiple of the patch 8"):
        replace(small(), data=Captions(size=20, count=96)).build()


@pytest.mark.system("clip")
@pytest.mark.system("clip", "recipe")
def test_a_residual_network_as_image_encoder() -> None:
    recipe = recipes.get("clip-scenes")
    assert isinstance(recipe, ContrastRecipe)
    recipe = replace(recipe, data=Captions(size=16, count=96), loop=replace(recipe.loop, batch=32))
    parts = recipe.build()
    run = Training(parts, recipe.loop, recipe.schedule, World())
    first = run.advance()["loss"]
    for _ in range(8):
        last = run.advance()["loss"]
    assert last < first
    assert parts.model.config.side == 16
