"""The control recipes: they learn, count environment steps, fit other environments, and refuse what does not fit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import descend
from descend import cli, recipes
from descend.data.control.replay import Explore
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.control import DeepQ, Play, ProximalPolicy, ReplayMemory
from descend.kinds.recipe import Recipe
from descend.models.gaussian_actor_critic import GaussianActorCritic
from descend.tasks.ppo import Proximal
from descend.verbs.announce import announce
from tests.close import close
from tests.data import worlds

assert worlds  # registers its environments

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
    assert [exhibit.kind for exhibit in pendulum.parts.exhibits()] == ["curve", "curve", "film", "sheet"]


def test_exhibits_are_curves_films_and_two_maps() -> None:
    for recipe in (SMALL_Q, SMALL_PPO):
        training = advance(recipe, 60)
        curve, lengths, film, strip, value, push = training.parts.exhibits()  # type: ignore[misc]
        kinds = [exhibit.kind for exhibit in (curve, lengths, film, strip, value, push)]
        assert kinds == ["curve", "curve", "film", "sheet", "heatmap", "heatmap"]
        assert curve.content["x"] == lengths.content["x"]
        assert curve.content["y"]["episode return"] == lengths.content["y"]["episode length"]  # a reward of 1 each step
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
        (lambda: replace(SMALL_PPO, ppo=Proximal(gamma=1.0)), "--ppo.gamma 1.0: must be .* at least 0 and below 1"),
        (lambda: replace(SMALL_Q, gamma=-0.1), "--gamma -0.1: must be .* at least 0 and below 1"),
        (lambda: replace(SMALL_PPO, loop=Loop(batch=4, accumulate=3)), "--batch 4 cannot be cut into 3 micro-batches"),
    ],
)
def test_what_does_not_fit_is_named(recipe: Callable[[], Recipe], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        recipe().build()


@pytest.mark.parametrize("name", ["FrozenLake-v1", "Blackjack-v1", "Mixed-v0"])
@pytest.mark.parametrize("recipe", [SMALL_Q, SMALL_PPO])
def test_every_kind_of_observation_trains_and_resumes_to_the_bit(recipe: Recipe, name: str) -> None:
    """Discrete, Tuple and Dict; the stream, the weights and the moments go on where they stood."""
    recipe = replace(recipe, data=replace(recipe.data, env=name))  # type: ignore[attr-defined]
    whole, first = advance(recipe, 9), advance(recipe, 5)
    rest = Training(recipe.build(), recipe.loop, recipe.schedule, World())
    rest.load_state_dict(copy.deepcopy(first.state_dict()))
    for _ in range(4):
        rest.advance()
    for a, b in zip(whole.task.parameters(), rest.task.parameters(), strict=True):
        assert torch.equal(a, b)
    assert whole.parts.stream.stream.envs.finished == rest.parts.stream.stream.envs.finished


def test_an_environment_with_moods_is_named_before_the_first_step() -> None:
    recipe = replace(SMALL_PPO, data=replace(SMALL_PPO.data, env="Moody-v0"))
    said = recipe.build().facts["not deterministic"]
    assert said == "Moody-v0 goes its own way from the same seed and actions; a resume will be refused"
    assert f"environment: {said}" in announce(recipe.build().facts, torch.device("cpu"), 1, "float32")
    assert "not deterministic" not in SMALL_PPO.build().facts


def test_what_breaks_on_the_way_loses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit code 2, and the checkpoints are there."""
    words = "--data.env Failing-v0 --data.length 8 --ppo.minibatches 2 --batch 2 --steps 50 --eval-every 4"
    run = tmp_path / "run"
    assert (
        cli.main(["train", "ppo-cartpole", *words.split(), "--save-every", "4", "--data.valid", "2", "--out", str(run)])
        == 2
    )
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert "Failing-v0: the reward is inf after step" in told
    assert (run / "checkpoints" / "last").exists()
    assert descend.load(run, "last").config.observations == 2


def test_a_policy_is_not_sharded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(Mistake, match="use --parallel ddp"):
        replace(SMALL_PPO, loop=Loop(batch=4, parallel="fsdp")).build()
