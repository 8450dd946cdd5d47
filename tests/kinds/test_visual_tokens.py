"""Recipes of visual tokens: training, resuming, sampling by prompt, and what the report shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from descend import recipes
from descend.data.images.captions import Captions
from descend.errors import Mistake
from descend.inference.sampler import Order, Sampler
from descend.models.dalle import DalleConfig
from descend.models.vq_vae import VQVAEConfig
from tests.close import close
from tests.engine.small import train, training, weights

DIGITS: Any = recipes.get("vqvae-digits")
SCENES: Any = recipes.get("dalle-scenes")
CODES = VQVAEConfig(maps=8, halvings=2, blocks=1, vocab=8, code=4)
SMALL = DalleConfig(CODES, width=16, depth=1, heads=2)


def short(recipe: Any, **changes: Any) -> Any:
    return replace(recipe, loop=replace(recipe.loop, threads=1, compile="off", precision="float32", **changes))


def scenes() -> Any:
    return replace(SCENES, model=SMALL, data=Captions(size=16, count=60, longest=14))


@pytest.mark.system("vq-vae", "recipe")
def test_digits_resume_sample_and_report(tmp_path: Path) -> None:
    recipe = replace(DIGITS, model=replace(SMALL, codes=replace(CODES, halvings=1)))
    changes = {"batch": 8, "eval_every": 2, "save_every": 2}
    whole = train(short(recipe, steps=4, **changes), tmp_path / "whole")
    train(short(recipe, steps=2, **changes), tmp_path / "parts")
    parts = train(short(recipe, steps=4, **changes), tmp_path / "parts", resume=True)
    assert weights(whole) == weights(parts)
    sampler = Sampler.open(whole.folder)
    images = sampler.sample(4, seed=2)
    assert images.shape == (4, 1, 8, 8)
    close(sampler.sample(1, seed=2, first=3)[0], images[3])
    with pytest.raises(Mistake, match="prompt"):
        sampler.sample(1, order=Order(prompt="a red circle"))
    run = training(short(recipe, **changes))
    found = run.evaluate()
    assert 1 <= found["codes_in_use"] <= 8
    assert run.parts.exhibits
    with torch.no_grad():
        titles = {e.title: e.kind for e in run.parts.exhibits()}
    assert titles["Images through tokens and back"] == "sheet"
    assert "missing" not in titles.values()


@pytest.mark.system("dall-e-1", "recipe")
def test_scenes_with_captions(tmp_path: Path) -> None:
    """Trained, saved with its tokenizer, opened and asked by a prompt; the same again for one of a batch."""
    changes = {"batch": 8, "eval_every": 2, "save_every": 2}
    whole = train(short(scenes(), steps=4, **changes), tmp_path / "whole")
    train(short(scenes(), steps=2, **changes), tmp_path / "parts")
    assert weights(train(short(scenes(), steps=4, **changes), tmp_path / "parts", resume=True)) == weights(whole)
    sampler = Sampler.open(whole.folder)
    images = sampler.sample(3, seed=1, order=Order(prompt="a large red circle"))
    assert images.shape == (3, 3, 16, 16)
    assert 0 <= images.min() <= images.max() <= 1
    close(sampler.sample(1, seed=1, order=Order(prompt="a large red circle"), first=2)[0], images[2])
    assert sampler.sample(2).shape == (2, 3, 16, 16)  # captions of its own


@pytest.mark.system("dall-e-1", "recipe", "one-transformer")
def test_what_a_step_minimises_and_a_report_shows() -> None:
    run = training(short(scenes(), batch=8))
    told = run.advance()
    assert {"loss_reconstruction", "loss_codebook", "loss_commitment", "loss_text", "loss_image"} <= set(told)
    assert run.parts.exhibits
    with torch.no_grad():
        [shown] = run.parts.exhibits()
    assert shown.kind == "sheet"
    assert shown.content["rows"].shape == (8, 4, 16, 16, 3)
    batch = next(iter(scenes().test()))
    assert batch["tokens"].shape[1] == 14


def test_mistakes() -> None:
    with pytest.raises(Mistake, match="cannot be halved"):
        replace(scenes(), data=Captions(size=18, count=60)).build()
    with pytest.raises(Mistake, match="visual tokens"):
        replace(scenes(), model=replace(SMALL, codes=replace(CODES, vocab=100_000))).build()
