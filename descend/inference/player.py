"""Playing: a trained policy acts without exploring.

Q-network      a = argmax_a Q(s, a)
actor-critic   a = argmax_a π(a|s), or the mean μ(s) where an action is a vector
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from descend.data.control.environments import Arena, episode_seed, spaces_of
from descend.errors import Mistake
from descend.files import field, read_json
from descend.inference.trained import Trained, load_trained
from descend.models.actor_critic import ActorCritic
from descend.models.gaussian_actor_critic import GaussianActorCritic
from descend.models.q_network import QNetwork
from descend.ops.actions import Categorical, Gaussian

PLAYED = 3  # first number of a seed's path, beside those of training, validation and test


@dataclass(frozen=True)
class Player:
    """A policy, and the environment that it was trained in."""

    trained: Trained
    env: str = ""
    """Its gymnasium name; empty for a model folder that does not say."""
    takes = "observations"

    @classmethod
    def open(cls, run: str | Path, checkpoint: str | int = "best") -> Player:
        """From a run or a model folder."""
        return cls.read(load_trained(run, checkpoint), run)

    @classmethod
    def read(cls, trained: Trained, run: str | Path) -> Player:
        """With the environment that the run's recipe names."""
        if not plays(trained):
            raise Mistake(f"{trained.folder} holds a {trained.kind}, which does not play")
        recipe = Path(run) / "recipe.json"
        return cls(trained, field(read_json(recipe), "values.data.env", str, recipe) if recipe.exists() else "")

    @torch.no_grad()
    def act(self, observation: Tensor) -> Tensor:
        """Observations (.., o) -> actions (..), or (.., n) where an action is a vector."""
        found = self.trained.model(observation.to(self.trained.device))
        if isinstance(self.trained.model, QNetwork):
            return found.argmax(dim=-1).cpu()
        policy = Gaussian if isinstance(self.trained.model, GaussianActorCritic) else Categorical
        return policy(found[0]).mode().cpu()

    def play(self, episodes: int = 10, seed: int = 0, env: str = "") -> list[float]:
        """The return of each of this many episodes."""
        name, config = env or self.env, self.trained.model.config
        if not name:
            raise Mistake(f"{self.trained.folder} does not say where it was trained; name the environment")
        if episodes < 1:
            raise Mistake(f"{episodes} episodes: at least 1")
        spaces = spaces_of(name)
        if (spaces.observations, spaces.actions) != (config.observations, config.actions):
            raise Mistake(
                f"{name} has {spaces.observations} observations and {spaces.actions} actions; this"
                f" {self.trained.kind} was trained on {config.observations} and {config.actions}"
            )
        seeds: Sequence[int] = [episode_seed(PLAYED, seed, i) for i in range(episodes)]
        return [float(total) for total in Arena(name)(self.act, seeds)]


def plays(trained: Trained) -> bool:
    """Whether the model is a policy."""
    return isinstance(trained.model, QNetwork | ActorCritic | GaussianActorCritic)
