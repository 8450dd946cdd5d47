"""Control: learn to act in a gymnasium environment, with a replay memory (DeepQ) or on-policy (ProximalPolicy).

Evaluation plays whole episodes greedily. Validation and test episodes start from seeds of their own, so the checkpoint
that validation selects is tested on episodes that had no part in selecting it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import torch

from descend.contracts import Batch, Exhibit
from descend.data.control.environments import (
    TEST,
    VALID,
    Arena,
    Environments,
    Episodes,
    Spaces,
    repeats_itself,
    spaces_of,
)
from descend.data.control.replay import Explore, Replay, ReplayBuffer
from descend.data.control.rollouts import Rollouts
from descend.data.streams.sliced import Sliced
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.recipe import Recipe, require_replicas
from descend.models.actor_critic import ActorCritic, ActorCriticConfig
from descend.models.gaussian_actor_critic import GaussianActorCritic, GaussianActorCriticConfig
from descend.models.q_network import QNetwork, QNetworkConfig
from descend.ops.actions import Categorical, Gaussian
from descend.optim.rules import Adam
from descend.optim.schedules import Linear
from descend.ranges import Count, Depth, Fraction, Range, Whole
from descend.tasks.dqn import DQN, Hard
from descend.tasks.playing import Playing
from descend.tasks.ppo import PPO, Proximal
from descend.views.control import map_states, show_episodes, show_lengths, show_policy, view_policy, view_values


@dataclass(frozen=True)
class ReplayMemory:
    """Environments, and the replay buffer."""

    env: str = "CartPole-v1"
    """Any gymnasium environment with vector observations and a finite set of actions."""
    copies: Depth = 8
    """Environments that run side by side; each takes one step for every batch."""
    capacity: Annotated[int, Range(int, least=1, most=10**8)] = 50_000
    """Transitions that the replay buffer holds."""
    longest: Whole = 0
    """Steps after which an episode is cut off; 0: the environment's own limit."""
    valid: Count = 20
    """Episodes of an evaluation during training."""
    test: Count = 100
    """Episodes of the final test."""


@dataclass(frozen=True)
class Play:
    """Environments, and the length of each rollout."""

    env: str = "CartPole-v1"
    """Any gymnasium environment with vector observations."""
    length: Annotated[int, Range(int, least=1, most=10**6)] = 128
    """Steps of each environment in a batch; --batch is the number of environments."""
    longest: Whole = 0
    """Steps after which an episode is cut off; 0: the environment's own limit."""
    valid: Count = 20
    """Episodes of an evaluation during training."""
    test: Count = 100
    """Episodes of the final test."""


@dataclass(frozen=True)
class DeepQ(Recipe):
    """DQN: an ε-greedy stream into a replay memory, a target network that follows."""

    model: QNetworkConfig = field(default_factory=QNetworkConfig)
    data: ReplayMemory = field(default_factory=ReplayMemory)
    optim: Any = field(default_factory=Adam)
    schedule: Any = field(default_factory=Linear)
    explore: Explore = field(default_factory=Explore)
    target: Any = field(default_factory=Hard)
    gamma: Fraction = 0.99
    """Discount."""
    package: ClassVar[str] = "gymnasium"

    def build(self) -> Parts:
        loop, data = self.loop, self.data
        require_positive({"--data.copies": data.copies, "--data.capacity": data.capacity, "--data.valid": data.valid})
        require_positive({"--batch": loop.batch, "--explore.steps": self.explore.steps})
        spaces = spaces_of(data.env)
        if not spaces.finite:
            raise Mistake(
                f"--data.env {data.env}: Q-learning needs a finite set of actions; use a PPO recipe for this one"
            )
        rank, world = require_replicas(loop.parallel)
        torch.manual_seed(loop.seed)
        model = QNetwork(replace(self.model, observations=spaces.observations, actions=spaces.actions))
        task = DQN(model, self.gamma, self.target, Arena(data.env, data.longest).scores)
        envs = Environments(data.env, data.copies, loop.seed, data.longest)
        stream = Replay(envs, task.values, ReplayBuffer(data.capacity), self.explore, loop.batch)
        return Parts(
            task=task,
            model=model,
            stream=Sliced(stream, loop.batch, loop.accumulate, rank, world),
            valid=Episodes(VALID, data.valid),
            optims={"q": self.optim},
            unit="environment steps",
            units_per_batch=data.copies,
            facts=describe_environment(data.env, spaces, data.longest) | {"replay capacity": data.capacity},
            exhibits=lambda: [
                *show_training(envs, task),
                *map_states(data.env, lambda s: view_values(task.values(s))),
            ],
        )

    def test(self) -> Iterable[Batch]:
        """The episodes of the final test."""
        return Episodes(TEST, self.data.test)


@dataclass(frozen=True)
class ProximalPolicy(Recipe):
    """PPO: rollouts of the policy as it is, several epochs on each."""

    model: ActorCriticConfig = field(default_factory=ActorCriticConfig)
    data: Play = field(default_factory=Play)
    optim: Any = field(default_factory=Adam)
    schedule: Any = field(default_factory=Linear)
    ppo: Proximal = field(default_factory=Proximal)
    package: ClassVar[str] = "gymnasium"

    def build(self) -> Parts:
        loop, data = self.loop, self.data
        require_positive({"--batch": loop.batch, "--data.length": data.length, "--data.valid": data.valid})
        spaces = spaces_of(data.env)
        if not 1 <= self.ppo.minibatches <= data.length:
            raise Mistake(
                f"--ppo.minibatches {self.ppo.minibatches}: use 1 to {data.length}, the steps of --data.length"
            )
        rank, world = require_replicas(loop.parallel)
        torch.manual_seed(loop.seed)
        model = build_actor_critic(self.model, spaces)
        arena = Arena(data.env, data.longest)
        task = PPO(model, Categorical if spaces.finite else Gaussian, self.ppo, arena.scores, loop.seed)
        envs = Environments(data.env, loop.batch, loop.seed, data.longest)
        stream = Rollouts(envs, task.act, task.look_back, data.length)
        return Parts(
            task=task,
            model=model,
            stream=Sliced(stream, loop.batch, loop.accumulate, rank, world),
            valid=Episodes(VALID, data.valid),
            optims={"policy": self.optim},
            unit="environment steps",
            units_per_batch=loop.batch * data.length,
            facts=describe_environment(data.env, spaces, data.longest) | {"environments": loop.batch},
            exhibits=lambda: [*show_training(envs, task), *map_states(data.env, lambda s: view_policy(*model(s)))],
        )

    def test(self) -> Iterable[Batch]:
        """The episodes of the final test."""
        return Episodes(TEST, self.data.test)


def show_training(envs: Environments, task: Playing) -> list[Exhibit]:
    """The episodes while it learned, and films of what was learned."""
    return [show_episodes(envs), show_lengths(envs), *show_policy(envs.name, task.greedy, envs.longest)]


def require_positive(flags: dict[str, int]) -> None:
    for flag, value in flags.items():
        if value < 1:
            raise Mistake(f"{flag} {value}: use at least 1")


def build_actor_critic(config: ActorCriticConfig, spaces: Spaces) -> ActorCritic | GaussianActorCritic:
    """Towers of the asked size, with the head that the environment's actions need."""
    if spaces.finite:
        return ActorCritic(replace(config, observations=spaces.observations, actions=spaces.actions))
    return GaussianActorCritic(
        GaussianActorCriticConfig(spaces.observations, spaces.actions, config.width, config.depth)
    )


def describe_environment(env: str, spaces: Spaces, longest: int = 0) -> dict[str, str | int]:
    """Its sizes, and a word of warning where its episodes are no function of seed and actions."""
    kind = "actions" if spaces.finite else "numbers in an action"
    facts: dict[str, str | int] = {"environment": env, "numbers seen": spaces.observations, kind: spaces.actions}
    if not repeats_itself(env, longest):
        facts["not deterministic"] = f"{env} goes its own way from the same seed and actions; a resume will be refused"
    return facts
