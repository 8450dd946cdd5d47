"""Recipes without labels: what they build, what a run leaves behind, and classifiers that start from it."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from descend import recipes
from descend.data.images.jepa_blocks import TargetBlocks
from descend.errors import Mistake
from descend.inference import open_run
from descend.inference.encoder import Encoder
from descend.kinds.start_from import Start
from descend.models import load
from descend.models.contrastive_encoder import ContrastiveEncoder
from descend.tasks.joint_embedding import MoCo
from tests.close import close
from tests.engine.small import train

SHORT = {"steps": 4, "batch": 24, "eval_every": 2, "save_every": 2, "threads": 1}


def short(name: str, **changes: Any) -> Any:
    recipe: Any = recipes.get(name)
    if name.endswith("scenes"):
        changes = {"data": replace(recipe.data, count=240), "known": 60, **changes}
    return replace(recipe, loop=replace(recipe.loop, **SHORT), **changes)


@pytest.fixture(scope="module", params=["simclr-scenes", "jepa-scenes", "mae-digits"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("runs") / request.param
    return request.param, Path(train(short(request.param), folder).folder)


START = {"simclr-scenes": "transfer-scenes", "jepa-scenes": "transfer-scenes", "mae-digits": "vit-digits"}


@pytest.mark.system("siamese-contrastive")
@pytest.mark.system("siamese-contrastive", "transfer")
@pytest.mark.system("simclr", "recipe")
@pytest.mark.system("jepa", "recipe")
def test_a_classifier_starts_from_the_run(run: tuple[str, Path]) -> None:
    """Its vectors are those of the encoder, and with everything frozen only the new head learns."""
    name, folder = run
    source: Any = load(folder / "checkpoints" / "best")
    recipe: Any = recipes.get(START[name])
    recipe = replace(recipe, loop=replace(recipe.loop, **SHORT), start=Start(str(folder), freeze="all"))
    parts = recipe.build()
    x = next(iter(parts.valid))["x"][:5]
    with torch.no_grad():
        found = parts.model.eval()
        vectors = found.tokens(x)[:, 1:].mean(1) if name == "mae-digits" else found.features(x)
        close(vectors, source.features(x))
    assert {n.partition(".")[0] for n, p in parts.model.named_parameters() if p.requires_grad} == {"head"}


@pytest.mark.system("simclr", "recipe")
@pytest.mark.system("jepa", "recipe")
def test_a_run_is_judged_by_probe_and_neighbours_and_gives_vectors(run: tuple[str, Path]) -> None:
    name, folder = run
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    scores = [line["valid"] for line in lines if "valid" in line]
    assert len(scores) == 2
    assert all(0 <= found["probe"] <= 1 and found["spread"] > 0 for found in scores)
    exhibits = short(name).build().exhibits()
    assert [exhibit.title for exhibit in exhibits][:2] == ["Map of the embedding", "Nearest neighbours"]
    assert all(exhibit.kind != "missing" for exhibit in exhibits)
    encoder = Encoder.open(folder)
    side = 8 if name == "mae-digits" else 32
    channels = 1 if name == "mae-digits" else 3
    assert encoder.encode_images(torch.rand(2, channels, side, side)).shape[0] == 2
    with pytest.raises(Mistake, match="gives vectors; use: descend embed"):
        open_run(folder)


@pytest.mark.parametrize("name", ["siamese-digits", "moco-scenes", "byol-scenes", "simsiam-scenes", "pirl-scenes"])
def test_the_parts_of_every_method(name: str) -> None:
    parts = short(name).build()
    assert isinstance(parts.model, ContrastiveEncoder)
    batch = next(parts.stream)
    assert ("pieces" in batch) == (name == "pirl-scenes")
    assert ("x2" in batch) != (name == "pirl-scenes")
    if isinstance(parts.task, MoCo):
        assert parts.task.queue.shape == (512, 64)
    titles = [exhibit.title for exhibit in parts.exhibits()]
    assert titles == ["Map of the embedding", "Nearest neighbours", "Views"]
    assert all(exhibit.kind != "missing" for exhibit in parts.exhibits())


@pytest.mark.system("moco", "recipe")
@pytest.mark.system("pirl", "recipe")
@pytest.mark.system("byol", "recipe")
@pytest.mark.system("simsiam", "recipe")
@pytest.mark.parametrize("name", ["moco-scenes", "pirl-scenes", "byol-scenes", "simsiam-scenes"])
def test_a_resumed_run_goes_on_as_if_it_had_not_stopped(name: str) -> None:
    """The same weights, queue, memory and slow copy, and vectors that vary."""
    recipe = short(name)
    first, second = (start(recipe) for _ in (1, 2))
    for _ in range(2):
        first.advance()
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for _ in range(2):
        assert first.advance() == second.advance()
    for (key, a), b in zip(first.task.state_dict().items(), second.task.state_dict().values(), strict=True):
        assert torch.equal(a, b), key
    scores = second.evaluate()
    assert scores["spread"] > 0.05
    assert 0 < scores["probe"] <= 1


def start(recipe: Any) -> Any:
    from descend.engine.distributed import World
    from descend.engine.training import Training

    return Training(recipe.build(), recipe.loop, recipe.schedule, World())


def test_mistakes() -> None:
    with pytest.raises(Mistake, match="square number of pieces"):
        short("pirl-scenes", model=replace(recipes.get("pirl-scenes").model, pieces=5)).build()
    recipe = short("simclr-scenes")
    for changes in ({"batch": 1}, {"batch": 4, "accumulate": 4}):
        with pytest.raises(Mistake, match="at least 2 images"):
            replace(recipe, loop=replace(recipe.loop, **changes)).build()
    with pytest.raises(Mistake, match="leave no context"):
        short("jepa-scenes", blocks=TargetBlocks(8, 3, 3)).build()
    with pytest.raises(Mistake, match="patches of 5 x 5 do not tile"):
        short("jepa-scenes", model=replace(recipes.get("jepa-scenes").model, patch=5)).build()
