"""Two-player recipes: learning, resuming, judging."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import descend.models as models
from descend import recipes
from descend.engine.evaluation import score_set
from descend.errors import Mistake
from descend.kinds.game import LOSSES, Game, LossName
from descend.kinds.mixture import AdversarialPoints, Points
from descend.kinds.saved import from_json, to_json
from descend.losses.adversarial import Saturating
from descend.losses.gradient_penalty import R1, GradientPenalty
from descend.models.gan import GANConfig
from descend.nn.adversarial.spectral import SpectralNorm
from descend.optim.schedules import Constant
from tests.engine.small import train, training, weights

GAN: Any = recipes.get("gan-mixture")


def short(recipe: AdversarialPoints, **changes: Any) -> AdversarialPoints:
    return replace(recipe, loop=replace(recipe.loop, **changes))


@pytest.mark.system("gan")
@pytest.mark.system("gan", "plane")
def test_a_generator_finds_the_modes() -> None:
    """Four wide modes, a fraction of the recipe's length; the recipe itself covers eight narrow ones."""
    recipe = short(replace(GAN, data=Points(modes=4, sigma=0.1)), steps=400, batch=128, ema=0.98)
    run = training(recipe)
    before = run.evaluate()
    for _ in range(400):
        run.advance()
    after = run.evaluate()
    assert before["overlap"] < 0.1
    assert after["modes"] == 4
    assert after["overlap"] > 0.7


@pytest.mark.system("gan", "sampled")
def test_a_resumed_game_ends_with_the_same_bits(tmp_path: Path) -> None:
    """Both players, both optimizers, the average and the noise."""
    recipe = replace(GAN, schedule=Constant(), data=Points(valid=100))
    changes = {"batch": 8, "eval_every": 4, "save_every": 4, "threads": 1}
    whole = train(short(recipe, steps=8, **changes), tmp_path / "whole")
    train(short(recipe, steps=4, **changes), tmp_path / "parts")
    parts = train(short(recipe, steps=8, **changes), tmp_path / "parts", resume=True)
    assert weights(whole) == weights(parts)
    ours, theirs = (load_file(run.checkpoints / "last" / "state.safetensors") for run in (whole, parts))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    assert type(models.load(whole.folder)).__name__ == "Generator"


def test_the_stream_is_the_mixture_and_fresh_noise() -> None:
    parts = GAN.build()
    first, second = next(parts.stream), next(parts.stream)
    assert first["x"].shape == first["z"].shape == (256, 2)
    assert not torch.equal(first["z"], second["z"])
    scores = parts.task.quality(first["x"])
    assert scores["quality"].mean() > 0.95
    assert int(scores["modes"][0]) == 8


def test_validation_and_test_noise_are_fixed_and_different() -> None:
    parts = GAN.build()
    (valid,), (again,), (test,) = parts.valid, GAN.build().valid, GAN.test()
    assert torch.equal(valid["z"], again["z"])
    assert len(valid["z"]) == 2500
    assert len(test["z"]) == 10_000
    assert not torch.equal(valid["z"][:100], test["z"][:100])
    assert set(score_set(parts.task, parts.valid)) == {"quality", "modes", "overlap"}


def test_exhibit() -> None:
    parts = GAN.build()
    with torch.no_grad():
        (cloud,) = parts.exhibits()  # type: ignore[misc]
    assert cloud.kind == "points"
    assert {name: len(points) for name, points in cloud.content.items()} == {"real": 1000, "generated": 1000}
    radius = torch.tensor(cloud.content["real"]).norm(dim=1)
    assert abs(float(radius.mean()) - 2.0) < 4 * 0.02 / 1000**0.5


def test_two_processes_share_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = next(GAN.build().stream)
    monkeypatch.setenv("WORLD_SIZE", "2")
    halves = []
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        halves.append(next(GAN.build().stream))
    for name in whole:
        assert torch.equal(whole[name], torch.cat([half[name] for half in halves]))


@pytest.mark.system("gan", "step-counts")
@pytest.mark.system("generator-loss-variants")
@pytest.mark.system("generator-loss-variants", "switchable")
def test_the_game_can_be_changed() -> None:
    rules = replace(GAN, game=Game("saturating", d_moves=2, g_moves=4)).build().task.rules
    assert rules.loss == Saturating()
    assert (rules.d_moves, rules.g_moves, rules.parts) == (2, 4, 4)


@pytest.mark.system("hinge-gan-loss", "selectable")
@pytest.mark.system("relativistic-gan", "selectable")
@pytest.mark.system("wgan", "moves")
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_is_a_word_and_takes_a_step(loss: LossName) -> None:
    recipe = short(replace(GAN, game=Game(loss, d_moves=2, clip=0.02)), batch=16)
    run = training(recipe)
    told = run.advance()
    assert all(math.isfinite(value) for value in told.values())
    rules = run.parts.task.rules
    assert rules.loss == LOSSES[loss]
    assert rules.clip == (0.02 if loss == "wasserstein" else 0.0)
    assert (rules.penalty is not None) == (loss == "wgan-gp") == ("loss_d_penalty" in told)


@pytest.mark.system("minibatch-discrimination", "plugged")
def test_norms_penalties_and_minibatches_are_flags() -> None:
    game = Game("hinge", norm="spectral", minibatch=5, r1=2.0)
    run = training(short(replace(GAN, game=game), batch=16))
    assert math.isfinite(run.advance()["loss_d_penalty"])
    d = run.parts.task.d
    assert d.out.in_features == 128 + 5
    assert len([m for m in d.modules() if isinstance(m, SpectralNorm)]) == 3
    assert run.parts.task.rules.penalty == R1(2.0)
    assert replace(GAN, game=Game("wgan-gp", penalty=1.0)).build().task.rules.penalty == GradientPenalty(1.0)


@pytest.mark.system("wgan-gp", "sharded")
def test_a_penalty_in_shards_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = short(replace(GAN, game=Game("wgan-gp")), parallel="fsdp")
    recipe.build()  # alone it does not matter
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(Mistake, match=r"--parallel fsdp: a penalty .* use --parallel ddp"):
        recipe.build()
    with pytest.raises(Mistake, match="× 2 processes"):
        short(replace(GAN, game=Game(d_moves=2)), batch=6).build()


def test_recipe_survives_json() -> None:
    assert from_json(to_json(GAN)) == GAN


def test_what_the_last_release_called_the_loss() -> None:
    old = {"class": "Game", "generator_loss": "saturating", "d_moves": 3}
    assert from_json(old) == Game("saturating", d_moves=3)


@pytest.mark.parametrize(
    ("recipe", "told"),
    [
        (
            lambda: replace(GAN, data=Points("grid", modes=8)),
            r"--data\.modes 8: a grid needs a square number, e\.g\. 4 or 9",
        ),
        (lambda: replace(GAN, data=Points(sigma=0.0)), r"--data\.sigma 0\.0: must be a finite number, above 0"),
        (lambda: short(GAN, batch=255, accumulate=2), "--batch 255 does not divide into --accumulate 2"),
        (
            lambda: replace(GAN, model=GANConfig(outputs=3)),
            r"--model\.outputs 3: the points of a mixture have 2 numbers",
        ),
        (lambda: replace(GAN, game=Game(d_moves=3)), r"--game\.d-moves 3 parts"),
        (lambda: replace(GAN, game=Game(g_moves=0)), r"--game\.g.moves 0: must be"),
        (
            lambda: short(replace(GAN, game=Game(d_moves=2)), batch=6, accumulate=2),
            r"--accumulate 2 × --game\.d-moves 2 parts",
        ),
    ],
)
def test_mistakes(recipe: Callable[[], AdversarialPoints], told: str) -> None:
    with pytest.raises(Mistake, match=told):
        recipe().build()


def test_a_grid_is_a_mixture_too() -> None:
    parts = replace(GAN, data=Points("grid", modes=25, radius=4.0, sigma=0.05)).build()
    assert parts.task.quality.mu.shape == (25, 2)
    assert parts.facts["data"] == "grid of 25 Gaussians"
