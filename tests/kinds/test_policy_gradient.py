"""The kinds that follow a policy's gradient: they learn, fit other environments, and refuse what does not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from descend import recipes
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.control import Play
from descend.kinds.policy_gradient import ActorCriticPolicy, MonteCarloPolicy, PlayWhole, TrustRegionPolicy
from descend.kinds.recipe import Recipe
from descend.models.gaussian_actor_critic import GaussianActorCritic
from descend.tasks.reinforce import MonteCarlo
from descend.tasks.trpo import Trusted
from tests.close import close

LOOP = Loop(steps=60, batch=4, precision="float32", compile="off")
WHOLE = MonteCarloPolicy(data=PlayWhole(valid=2), loop=LOOP)
SHORT = ActorCriticPolicy(data=Play(length=8, valid=2), loop=LOOP)
REGION = TrustRegionPolicy(data=Play(length=8, valid=2), trpo=Trusted(epochs=2, minibatches=2), loop=LOOP)
ALL = pytest.mark.parametrize("recipe", [WHOLE, SHORT, REGION])


def advance(recipe: Recipe, steps: int, seed: int = 0) -> Training:
    torch.set_num_threads(1)
    recipe = replace(recipe, loop=replace(recipe.loop, seed=seed))
    training = Training(recipe.build(), recipe.loop, recipe.schedule, World())
    for _ in range(steps):
        training.advance()
    return training


@pytest.mark.system("reinforce")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "steps"), [("reinforce-cartpole", 14), ("a2c-cartpole", 120), ("trpo-cartpole", 6)])
def test_they_learn_to_balance(name: str, steps: int, seed: int) -> None:
    """A random policy lasts about 20 steps; a few steps do. The full runs reach 500."""
    training = advance(recipes.get(name), steps, seed)
    assert training.evaluate()["return"] > 100


@ALL
def test_micro_batches_learn_what_the_batch_does(recipe: Recipe) -> None:
    """The environments step as often, and the weights agree to rounding."""
    whole, halves = advance(recipe, 4), advance(replace(recipe, loop=replace(recipe.loop, accumulate=2)), 4)
    for a, b in zip(whole.parts.model.parameters(), halves.parts.model.parameters(), strict=True):
        close(a, b, loosen=10)  # float32, through conjugate gradients in one of the three


@ALL
def test_other_environments_fit(recipe: Recipe) -> None:
    pendulum = advance(replace(recipe, data=replace(recipe.data, env="Pendulum-v1")), 2)
    assert isinstance(pendulum.parts.model, GaussianActorCritic)
    assert pendulum.evaluate()["return"] < 0
    assert pendulum.parts.exhibits is not None
    assert pendulum.parts.exhibits()[0].kind == "curve"


@ALL
def test_test_episodes_are_not_those_that_select(recipe: Recipe) -> None:
    (valid,), (test,) = list(recipe.build().valid), list(recipe.test())
    assert len(test["seed"]) == 100
    assert not set(valid["seed"].tolist()) & set(test["seed"].tolist())


def test_every_parameter_of_the_model_is_trained_and_saved() -> None:
    """Of the two players of TRPO, too: the model's own tensors, not copies."""
    training = advance(REGION, 0)
    before = {name: x.clone() for name, x in training.parts.model.state_dict().items()}
    for _ in range(3):
        training.advance()
    assert all(not torch.equal(x, before[name]) for name, x in training.parts.model.state_dict().items())


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (lambda: replace(REGION, loop=replace(LOOP, clip=0.5)), "--clip 0.5: the trust region limits the step"),
        (lambda: replace(REGION, loop=replace(LOOP, compile="on")), "--compile on: TRPO differentiates twice"),
        (lambda: replace(REGION, trpo=Trusted(minibatches=9)), "--trpo.minibatches 9: use 1 to 8"),
        (lambda: replace(SHORT, loop=replace(LOOP, accumulate=3)), "--batch 4 cannot be cut into 3 micro-batches"),
        (lambda: replace(WHOLE, reinforce=MonteCarlo(gamma=1.5)), "--reinforce.gamma 1.5: must be"),
        (lambda: replace(WHOLE, loop=replace(LOOP, batch=0)), "--batch 0: use at least 1"),
        (
            lambda: replace(WHOLE, reinforce=MonteCarlo(baseline="mean"), loop=replace(LOOP, batch=1)),
            "--batch 1: the mean of the other episodes needs others",
        ),
    ],
)
def test_what_does_not_fit_is_named(recipe: Callable[[], Recipe], message: str) -> None:
    with pytest.raises(Mistake, match=message):
        recipe().build()


def test_a_policy_is_not_sharded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(Mistake, match="use --parallel ddp"):
        replace(SHORT, loop=replace(LOOP, parallel="fsdp")).build()
