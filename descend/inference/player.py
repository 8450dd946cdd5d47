"""Playing: a trained policy acts without exploring.

Q-network, Q-table      a = argmax_a Q(s, a)
actor-critic            a = argmax_a π(a|s), or the mean μ(s) where an action is a vector
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from descend.data.control.environments import Arena, Outcome, episode_seed, spaces_of
from descend.errors import Mistake
from descend.files import field, field_or, read_json
from descend.inference.trained import Trained, load_trained
from descend.models.actor_critic import ActorCritic
from descend.models.gaussian_actor_critic import GaussianActorCritic
from descend.models.q_network import QNetwork
from descend.models.q_table import QTable
from descend.ops.actions import Categorical, Gaussian
from descend.views.worlds import Filmed, Filming

PLAYED = 3  # first number of a seed's path, beside those of training, validation and test


@dataclass(frozen=True)
class Player:
    """A policy, and the environment that it was trained in."""

    trained: Trained
    env: str = ""
    """Its gymnasium name; empty for a model folder that does not say."""
    longest: int = 0
    """Steps after which an episode is cut off; 0: the environment's own limit."""
    takes = "observations"

    @classmethod
    def open(cls, run: str | Path, checkpoint: str | int = "best") -> Player:
        """From a run, a model folder, or a policy of Stable-Baselines3 (.zip)."""
        return cls.read(load_trained(run, checkpoint), run)

    @classmethod
    def read(cls, trained: Trained, run: str | Path) -> Player:
        """With the environment that the run's recipe names."""
        if not plays(trained):
            raise Mistake(f"{trained.folder} holds a {trained.kind}, which does not play")
        recipe = Path(run) / "recipe.json"
        if not recipe.exists():
            return cls(trained)
        data = field(read_json(recipe), "values.data", dict, recipe)
        if field_or(data, "path", str, "", recipe):
            raise Mistake(f"{run} was trained on a file of a decision process, which gymnasium does not play")
        return cls(trained, field(data, "env", str, recipe), field_or(data, "longest", int, 0, recipe))

    @torch.no_grad()
    def act(self, observation: Tensor) -> Tensor:
        """Observations (.., o) -> actions (..), or (.., n) where an action is a vector."""
        found = self.trained.model(observation.to(self.trained.device))
        if isinstance(self.trained.model, QNetwork | QTable):
            return found.argmax(dim=-1).cpu()
        policy = Gaussian if isinstance(self.trained.model, GaussianActorCritic) else Categorical
        return policy(found[0]).mode().cpu()

    def play(self, episodes: int = 10, seed: int = 0, env: str = "") -> list[float]:
        """The return of each of this many episodes."""
        return [float(total) for total in self.outcome(episodes, seed, env).returns]

    def outcome(self, episodes: int = 10, seed: int = 0, env: str = "") -> Outcome:
        """Returns and lengths of this many episodes."""
        return Arena(self.fit(env), self.longest).play(self.act, episode_seeds(episodes, seed))

    def film(self, episodes: int = 1, seed: int = 0, env: str = "") -> Iterator[tuple[Filmed, float]]:
        """The same episodes one after another, with a picture of each step and how many belong into a second."""
        filming = Filming(self.fit(env), self.longest)
        for number in episode_seeds(episodes, seed):
            yield filming.film(self.act, number), filming.rate

    def fit(self, env: str = "") -> str:
        """The environment to play in, if it is one that the policy understands."""
        name, config = env or self.env, self.trained.model.config
        if not name:
            raise Mistake(f"{self.trained.folder} does not say where it was trained; name the environment: --env")
        spaces = spaces_of(name)
        finite = not isinstance(self.trained.model, GaussianActorCritic)
        if (spaces.observations, spaces.actions) != (config.observations, config.actions):
            raise Mistake(
                f"{name} has {spaces.observations} observations and {spaces.actions} actions; this"
                f" {self.trained.kind} was trained on {config.observations} and {config.actions}"
            )
        if spaces.finite != finite:
            raise Mistake(
                f"{name} takes {'one of its' if spaces.finite else 'vectors as'} actions; {self.trained.kind} does not"
            )
        return name


def episode_seeds(episodes: int, seed: int) -> Sequence[int]:
    """The seeds of the episodes that belong to a seed."""
    if episodes < 1:
        raise Mistake(f"{episodes} episodes: at least 1")
    return [episode_seed(PLAYED, seed, i) for i in range(episodes)]


def plays(trained: Trained) -> bool:
    """Whether the model is a policy."""
    return isinstance(trained.model, QNetwork | QTable | ActorCritic | GaussianActorCritic)
