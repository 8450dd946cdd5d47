"""Masked image pre-training as a recipe, and classifiers that start from it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from descend import recipes
from descend.errors import Mistake
from descend.kinds.start_from import Start
from descend.models import load
from descend.models.beit import BeitForImageClassification, BeitForMaskedImageModeling
from tests.close import close
from tests.engine.small import train

SHORT = {"steps": 4, "batch": 24, "eval_every": 2, "save_every": 2, "threads": 1}


def short(name: str, **changes: Any) -> Any:
    recipe: Any = recipes.get(name)
    return replace(recipe, model=replace(recipe.model, depth=1), loop=replace(recipe.loop, **SHORT), **changes)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(train(short("beit-digits"), tmp_path_factory.mktemp("runs") / "beit").folder)


@pytest.mark.system("beit")
def test_the_parts() -> None:
    parts = short("beit-digits").build()
    assert isinstance(parts.model, BeitForMaskedImageModeling)
    batch = next(parts.stream)
    assert batch["hide"].shape == batch["y"].shape == (24, 16)
    assert int(batch["y"].max()) < 32
    assert 2 < parts.facts["loss of a guess by frequency"] < math.log(32)
    shown = parts.exhibits()[0].content  # image, seen, filled in, true tokens; six times
    assert shown["images"].shape == (24, 8, 8)
    hidden = torch.from_numpy(shown["images"][1] == 0.5)
    assert bool(hidden.any())
    same = torch.from_numpy(shown["images"][0])[~hidden]
    close(torch.from_numpy(shown["images"][2])[~hidden], same, loosen=10)


@pytest.mark.system("beit")
@pytest.mark.system("beit", "fine-tuning")
def test_a_classifier_starts_from_the_run(pretrained: Path) -> None:
    source: Any = load(pretrained / "checkpoints" / "best")
    parts = short("beit-digits-classify", start=Start(str(pretrained), freeze="all")).build()
    model: Any = parts.model
    assert isinstance(model, BeitForImageClassification)
    x = next(iter(parts.valid))["x"][:5]
    with torch.no_grad():
        close(model.eval().tokens(x), source.tokens(x))
    learns = {name.partition(".")[0] for name, p in model.named_parameters() if p.requires_grad}
    assert learns == {"head"}


@pytest.mark.system("vit-pretrain-finetune")
@pytest.mark.system("vit-pretrain-finetune", "resolution")
def test_a_vit_at_another_resolution(tmp_path: Path) -> None:
    """8 x 8 pixels and 16 patches before, 12 x 12 and 36 after."""
    first = short("vit-digits")
    source: Any = first.build().model
    source.save_pretrained(tmp_path)
    larger = replace(first, data=replace(first.data, size=12), start=Start(str(tmp_path)))
    model: Any = larger.build().model
    assert model.config.side == 12
    close(model.embed.positions, source.embed.positions_at(12))
    assert torch.equal(model.encoder.blocks[0].attn.q.weight, source.encoder.blocks[0].attn.q.weight)


def test_mistakes() -> None:
    recipe = short("beit-digits")
    with pytest.raises(Mistake, match=r"--model.vocab 30000: .* too few for 30000 visual tokens"):
        replace(recipe, model=replace(recipe.model, vocab=30_000)).build()
    with pytest.raises(Mistake, match="patches of 3 x 3 do not tile an image of 8 x 8"):
        replace(recipe, model=replace(recipe.model, patch=3)).build()
