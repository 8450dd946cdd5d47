"""The control recipes: they learn, count environment steps, fit other environments, and refuse what does not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from descend import recipes
from descend.data.control.replay import Explore
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.control import DeepQ, Play, ProximalPolicy, ReplayMemory
from descend.kinds.recipe import Recipe
from descend.models.gaussian_actor_critic import GaussianActorCritic
from descend.tasks.ppo import Proximal
from tests.close import close

SMALL_Q = DeepQ(
    data=ReplayMemory(copies=2, capacity=100, valid=2),
    explore=Explore(warmup=20, steps=50),
    loop=Loop(steps=60, batch=8),
)
SMALL_PPO = ProximalPolicy(
    data=Play(length=8, valid=2), ppo=Proximal(epochs=2, minibatches=2), loop=Loop(steps=60, batch=4, clip=0.5)
)


def advance(recipe: Recipe, steps: int, seed: int = 0) -> Training:
    torch.set_num_threads(1)
    recipe = replace(recipe, loop=replace(recipe.loop, seed=seed))
    training = Training(recipe.build(), recipe.loop, recipe.schedule, World())
    for _ in range(steps):
        training.advance()
    return training


@pytest.mark.system("ppo")
@pytest.mark.system("ppo", "discrete")
@pytest.mark.parametrize("seed", range(3))
def test_ppo_learns_to_balance(seed: int) -> None:
    """A random policy lasts about 20 steps. Eight rollouts do; the recipe's full run reaches 500."""
    training = advance(recipes.get("ppo-cartpole"), 8, seed)
    assert training.evaluate()["return"] > 150


@pytest.mark.system("dqn")
@pytest.mark.system("dqn", "control")
@pytest.mark.system("replay-buffer")
@pytest.mark.system("replay-buffer", "used")
@pytest.mark.parametrize("seed", range(3))
def test_dqn_learns_to_balance(seed: int) -> None:
    training = advance(recipes.get("dqn-cartpole"), 700, seed)
    assert training.evaluate()["return"] > 80


@pytest.mark.parametrize("recipe", [SMALL_Q, SMALL_PPO])
def test_micro_batches_learn_what_the_batch_does(recipe: Recipe) -> None:
    """The environments step as often, and the weights agree to rounding."""
    whole, halves = advance(recipe, 6), advance(replace(recipe, loop=replace(recipe.loop, accumulate=2)), 6)
    assert whole.parts.stream.stream.envs.steps == halves.parts.stream.stream.envs.steps
    for a, b in zip(whole.task.parameters(), halves.task.parameters(), strict=True):
        close(a, b)


def test_throughput_counts_environment_steps() -> None:
    for recipe, warmup in ((SMALL_Q, 20), (SMALL_PPO, 0)):
        training = advance(recipe, 3)
        parts = training.parts
        assert parts.unit == "environment steps"
        assert parts.stream.stream.envs.steps == 3 * parts.units_per_batch + warmup


def test_test_episodes_are_not_those_that_select() -> None:
    for recipe in (SMALL_Q, SMALL_PPO):
        (valid,), (test,) = list(recipe.build().valid), list(recipe.test())
        assert len(test["seed"]) == 100
        assert not set(valid["seed"].tolist()) & set(test["seed"].tolist())


def test_other_environments_fit() -> None:
    acrobot = advance(replace(SMALL_Q, data=replace(SMALL_Q.data, env="Acrobot-v1")), 2)
    assert (acrobot.parts.model.config.observations, acrobot.parts.model.config.actions) == (6, 3)
    pendulum = advance(replace(SMALL_PPO, data=replace(SMALL_PPO.data, env="Pendulum-v1")), 2)
    assert isinstance(pendulum.parts.model, GaussianActorCritic)
    assert pendulum.evaluate()["return"] < 0
    assert pendulum.parts.exhibits is not None
    assert [exhibit.kind for exhibit in pendulum.parts.exhibits()] == ["curve"]


def test_exhibits_are_the_curve_and_two_maps() -> None:
    for recipe in (SMALL_Q, SMALL_PPO):
        training = advance(recipe, 60)
        curve, value, push = training.parts.exhibits()  # type: ignore[misc]
        assert (curve.kind, value.kind, push.kind) == ("curve", "heatmap", "heatmap")
        assert len(curve.content["x"]) == len(curve.content["y"]["episode return"]) > 0
        assert torch.tensor(value.content["values"]).shape == (25, 25)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (
            lambda: replace(SMALL_Q, data=ReplayMemory(env="Pendulum-v1")),
            "Q-learning needs a finite set of actions; use a PPO recipe",
        ),
        (lambda: replace(SMALL_Q, data=ReplayMemory(copies=0)), "--data.copies 0: must be a whole number, at least 1"),
        (lambda: replace(SMALL_PPO, data=Play(length=0)), "--data.length 0: must be a whole number, at least 1"),
        (lambda: replace(SMALL_PPO, ppo=Proximal(minibatches=9)), "--ppo.minibatches 9: use 1 to 8"),
        (lambda: replace(SMALL_PPO, loop=Loop(batch=4, accumulate=3)), "--batch 4 cannot be cut into 3 micro-batches"),
    ],
)
def test_what_does_not_fit_is_named(recipe: Callable[[], Recipe], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        recipe().build()


def test_a_policy_is_not_sharded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(Mistake, match="use --parallel ddp"):
        replace(SMALL_PPO, loop=Loop(batch=4, parallel="fsdp")).build()
