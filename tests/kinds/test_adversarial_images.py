"""Adversarial recipes on images: what they build, how they grow, whom they ask, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from descend import recipes
from descend.data.images.digits import Digits
from descend.errors import Mistake
from descend.inference.sampler import Order, Sampler
from descend.kinds.adversarial_images import GrowthPlan
from descend.kinds.game import Game
from descend.kinds.image_judge import ImageJudge
from tests.close import close
from tests.engine.small import train, training

NAMES = ("dcgan-digits", "conditional-gan-digits", "progressive-gan-digits", "stylegan-digits")


def short(name: str, **changes: Any) -> Any:
    recipe: Any = recipes.get(name)
    loop = replace(recipe.loop, steps=6, batch=8, eval_every=3, save_every=3, threads=1, ema=0.5)
    grow = {"growing": GrowthPlan(stay=1, fade=1)} if name.startswith("progressive") else {}
    return replace(recipe, loop=loop, **{**grow, **changes})


@pytest.mark.system("conditional-gan", "chosen")
def test_a_run_is_sampled_by_class(tmp_path: Path) -> None:
    run = train(short("conditional-gan-digits"), tmp_path / "cgan")
    sampler = Sampler.open(run.folder)
    sevens = sampler.sample(3, seed=1, order=Order(label="7"))
    assert sevens.shape == (3, 1, 8, 8)
    assert 0 <= sevens.min() <= sevens.max() <= 1
    close(sampler.sample(1, seed=1, order=Order(label="7"), first=2), sevens[2:])
    with pytest.raises(Mistake, match="--class 'seven' is unknown"):
        sampler.sample(1, order=Order(label="seven"))


@pytest.mark.system("dcgan", "sampled")
def test_a_run_without_classes_is_sampled(tmp_path: Path) -> None:
    plain = Sampler.open(train(short("dcgan-digits"), tmp_path / "dcgan").folder)
    assert plain.sample(5).shape == (5, 1, 8, 8)
    with pytest.raises(Mistake, match="--class: a DCGAN does not take it"):
        plain.sample(1, order=Order(label="7"))


def test_samples_are_shown_with_their_neighbours() -> None:
    parts = short("dcgan-digits").build()
    with torch.no_grad():
        shown = {exhibit.title: exhibit for exhibit in parts.exhibits()}
    assert "Samples" in shown
    assert "Samples and their nearest training images" in shown


@pytest.mark.parametrize("name", NAMES)
def test_randomness_comes_with_the_batch(name: str) -> None:
    """The same batch gives the same losses, and the stream can be cut without changing it."""
    batch = next(short(name).build().stream)
    halves = short(name)
    halves = replace(halves, loop=replace(halves.loop, accumulate=2)).build().stream
    both = [next(halves), next(halves)]
    for key in batch:
        close(batch[key], torch.cat([half[key] for half in both]))


# The judge


def test_the_judge_knows_digits_and_tells_noise_and_copies() -> None:
    parts = short("conditional-gan-digits").build()
    judge = parts.task.quality
    assert isinstance(judge, ImageJudge)
    valid = next(iter(parts.valid))
    state = torch.get_rng_state()

    def of(images: torch.Tensor, classes: torch.Tensor) -> dict[str, float]:
        found = judge(images, classes)
        means = {name: float(found[name].mean()) for name in ("sure", "right")}
        return judge.judge(means, {name: found[name] for name in judge.evidence})

    real = of(valid["x"], valid["y"])
    assert torch.equal(torch.get_rng_state(), state)  # it is trained without touching the run's random numbers
    assert real["right"] > 0.95
    assert real["classes"] == 10
    assert real["coverage"] == 1
    noise = of(torch.rand_like(valid["x"]) * 2 - 1, valid["y"])
    copies = of(valid["x"][:1].expand_as(valid["x"]), valid["y"])
    assert real["distance"] < 1 < 5 < noise["distance"]
    assert copies["classes"] == 1
    assert copies["distance"] > 5


def test_without_classes_pixels_are_compared() -> None:
    judge = ImageJudge(Digits().read_unlabelled, replace(short("dcgan-digits").prepare(Digits().read()), labels=()))
    found = judge(torch.rand(6, 1, 8, 8))
    assert set(found) == {"features", "read"}
    assert found["features"].shape == (6, 16)
    assert set(judge.judge({}, found)) == {"distance"}
    assert judge.describe()["judge"].startswith("pixels")


# Growing


@pytest.mark.system("progressive-gan", "growing")
def test_growth_over_the_steps() -> None:
    plan = GrowthPlan(stay=4, fade=4)
    steps = torch.arange(0, 24)
    found = plan.at(steps, 3).tolist()
    assert found[:9] == [0, 0, 0, 0, 0, 0.25, 0.5, 0.75, 1]
    assert found[12:17] == [1, 1.25, 1.5, 1.75, 2]
    assert found[-1] == 2


@pytest.mark.system("progressive-gan", "growing")
def test_both_players_grow_during_a_run_to_16_by_16() -> None:
    recipe = short("progressive-gan-digits", growing=GrowthPlan(stay=1, fade=1))
    recipe = replace(recipe, loop=replace(recipe.loop, steps=8, accumulate=2))
    run = training(recipe)
    sides, growths = [], []
    for _ in range(6):
        run.advance()
        g = run.parts.model
        growths.append(float(g.growth))
        sides.append(g(torch.randn(2, 32)).shape[-1])
        assert float(run.parts.task.d.growth) == growths[-1]
    assert growths == [0, 0, 1, 1, 2, 2]  # both micro-batches of a step are equally far
    assert sides == [4, 4, 8, 8, 16, 16]
    scores = run.evaluate()
    assert {"distance", "classes", "sure"} <= set(scores)


@pytest.mark.parametrize(
    ("recipe", "told"),
    [
        (lambda: short("dcgan-digits", data=Digits(size=9)), r"--model: side 9 is not divisible .* --data\.size 8"),
        (lambda: short("dcgan-digits", game=Game(minibatch=4)), r"--game\.minibatch is for points"),
        (lambda: short("dcgan-digits", game=Game(d_moves=3)), r"--game\.d-moves 3 parts"),
        (
            lambda: short("progressive-gan-digits", growing=GrowthPlan()),
            r"--steps 6: growing to the full side takes 1,600",
        ),
        (lambda: short("stylegan-digits", data=Digits(size=12)), r"--model: side 12: it is doubled from 4 on"),
    ],
)
def test_mistakes(recipe: Callable[[], Any], told: str) -> None:
    with pytest.raises(Mistake, match=told):
        recipe().build()


@pytest.mark.system("progressive-gan", "growing")
def test_growing_is_for_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(Mistake, match="start one process"):
        short("progressive-gan-digits").build()
