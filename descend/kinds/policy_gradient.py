"""Policies that follow their gradient in a gymnasium environment: REINFORCE, actor-critic, TRPO.

Evaluation plays whole episodes greedily, on seeds of their own, as for the kinds of `descend.kinds.control`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import torch

from descend.contracts import Batch, Stream
from descend.data.control.environments import TEST, VALID, Arena, Environments, Episodes, Spaces, spaces_of
from descend.data.control.rollouts import Rollouts
from descend.data.control.whole_episodes import WholeEpisodes
from descend.data.streams.sliced import Sliced
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.control import (
    Play,
    build_actor_critic,
    describe_environment,
    require_positive,
    show_training,
)
from descend.kinds.recipe import Recipe, require_replicas
from descend.models.actor_critic import ActorCritic, ActorCriticConfig
from descend.models.gaussian_actor_critic import GaussianActorCritic
from descend.ops.actions import Categorical, Gaussian
from descend.optim.rules import Adam
from descend.optim.schedules import Linear
from descend.optim.trust_region import TrustRegion
from descend.ranges import Count, Whole
from descend.tasks.acting import Acting
from descend.tasks.actor_critic import Advantage, AdvantageActorCritic
from descend.tasks.reinforce import MonteCarlo, Reinforce
from descend.tasks.trpo import TRPO, Trusted
from descend.views.control import map_states, view_policy


@dataclass(frozen=True)
class PlayWhole:
    """Environments, played from the first state of an episode to its last; --batch is the number of episodes."""

    env: str = "CartPole-v1"
    """Any gymnasium environment whose observations are numbers."""
    longest: Whole = 0
    """Steps after which an episode is cut off; 0: the environment's own limit."""
    valid: Count = 20
    """Episodes of an evaluation during training."""
    test: Count = 100
    """Episodes of the final test."""


@dataclass(frozen=True)
class MonteCarloPolicy(Recipe):
    """REINFORCE: whole episodes of the policy as it is, one step on each batch of them."""

    model: ActorCriticConfig = field(default_factory=ActorCriticConfig)
    data: PlayWhole = field(default_factory=PlayWhole)
    optim: Any = field(default_factory=Adam)
    schedule: Any = field(default_factory=Linear)
    reinforce: MonteCarlo = field(default_factory=MonteCarlo)
    package: ClassVar[str] = "gymnasium"

    def build(self) -> Parts:
        loop, data = self.loop, self.data
        if self.reinforce.baseline == "mean" and loop.batch < 2:
            raise Mistake("--batch 1: the mean of the other episodes needs others; use --reinforce.baseline learned")
        set_up = SetUp.of(self)
        task = Reinforce(set_up.model, set_up.actions, self.reinforce, set_up.arena.scores)
        stream = WholeEpisodes(data.env, loop.batch, loop.seed, task.act, task.look_back, data.longest)
        return set_up.parts(task, stream, {"policy": self.optim}, stream, "episodes", loop.batch)

    def test(self) -> Iterable[Batch]:
        """The episodes of the final test."""
        return Episodes(TEST, self.data.test)


@dataclass(frozen=True)
class ActorCriticPolicy(Recipe):
    """A2C: short rollouts of the policy as it is, one step on each."""

    model: ActorCriticConfig = field(default_factory=ActorCriticConfig)
    data: Play = field(default_factory=Play)
    optim: Any = field(default_factory=Adam)
    schedule: Any = field(default_factory=Linear)
    a2c: Advantage = field(default_factory=Advantage)
    package: ClassVar[str] = "gymnasium"

    def build(self) -> Parts:
        set_up = SetUp.of(self)
        task = AdvantageActorCritic(set_up.model, set_up.actions, self.a2c, set_up.arena.scores)
        return set_up.roll_out(task, {"policy": self.optim})

    def test(self) -> Iterable[Batch]:
        """The episodes of the final test."""
        return Episodes(TEST, self.data.test)


@dataclass(frozen=True)
class TrustRegionPolicy(Recipe):
    """TRPO: long rollouts, one step on each for the actor inside the trust region, many for the critic."""

    model: ActorCriticConfig = field(default_factory=ActorCriticConfig)
    data: Play = field(default_factory=Play)
    optim: TrustRegion = field(default_factory=TrustRegion)
    """Of the actor; its rate is the largest KL of a step."""
    critic: Any = field(default_factory=Adam)
    """Of the critic."""
    schedule: Any = field(default_factory=Linear)
    trpo: Trusted = field(default_factory=Trusted)
    package: ClassVar[str] = "gymnasium"

    def build(self) -> Parts:
        loop, length, minibatches = self.loop, self.data.length, self.trpo.minibatches
        if minibatches > length:
            raise Mistake(f"--trpo.minibatches {minibatches}: use 1 to {length}, the steps of --data.length")
        if loop.clip:
            raise Mistake(f"--clip {loop.clip:g}: the trust region limits the step of TRPO; leave it at 0")
        if loop.compile == "on":
            raise Mistake("--compile on: TRPO differentiates twice, which compiled code cannot; use --compile off")
        set_up = SetUp.of(self)
        task = TRPO(set_up.model.split(), set_up.actions, self.trpo, set_up.arena.scores, loop.seed)
        return set_up.roll_out(task, {"policy": self.optim.answer(task.query), "value": self.critic})

    def test(self) -> Iterable[Batch]:
        """The episodes of the final test."""
        return Episodes(TEST, self.data.test)


@dataclass(frozen=True)
class SetUp:
    """What the three have in common: the environment, and a model that fits it."""

    recipe: MonteCarloPolicy | ActorCriticPolicy | TrustRegionPolicy
    spaces: Spaces
    model: ActorCritic | GaussianActorCritic
    arena: Arena
    place: tuple[int, int]
    """Which process this is, and of how many."""

    @classmethod
    def of(cls, recipe: MonteCarloPolicy | ActorCriticPolicy | TrustRegionPolicy) -> SetUp:
        loop, data = recipe.loop, recipe.data
        require_positive({"--batch": loop.batch})
        spaces, place = spaces_of(data.env), require_replicas(loop.parallel)
        torch.manual_seed(loop.seed)
        return cls(recipe, spaces, build_actor_critic(recipe.model, spaces), Arena(data.env, data.longest), place)

    @property
    def actions(self) -> type[Categorical] | type[Gaussian]:
        return Categorical if self.spaces.finite else Gaussian

    def roll_out(self, task: AdvantageActorCritic | TRPO, optims: dict[str, Any]) -> Parts:
        """The parts of a task that learns from stretches of --data.length steps."""
        loop, data = self.recipe.loop, self.recipe.data
        assert isinstance(data, Play)
        envs = Environments(data.env, loop.batch, loop.seed, data.longest)
        stream = Rollouts(envs, task.act, task.look_back, data.length)
        return self.parts(task, stream, optims, envs, "environment steps", loop.batch * data.length)

    def parts(
        self,
        task: Acting,
        stream: Stream,
        optims: dict[str, Any],
        envs: Environments | WholeEpisodes,
        unit: str,
        units: int,
    ) -> Parts:
        loop, data, model = self.recipe.loop, self.recipe.data, self.model
        return Parts(
            task=task,
            model=model,
            stream=Sliced(stream, loop.batch, loop.accumulate, *self.place),
            valid=Episodes(VALID, data.valid),
            optims=optims,
            unit=unit,
            units_per_batch=units,
            facts=describe_environment(data.env, self.spaces, data.longest) | {"environments": loop.batch},
            exhibits=lambda: [
                *show_training(cast(Environments, envs), task),
                *map_states(data.env, lambda s: view_policy(*model(s))),
            ],
        )
