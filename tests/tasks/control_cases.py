"""Small cases of the tasks that follow a policy's gradient, for `cases.py`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.contracts import Batch, Task
from descend.models.actor_critic import ActorCritic, ActorCriticConfig
from descend.models.gpt2 import GPT2, GPT2Config
from descend.nn.value_head import TextScore, WithValues
from descend.ops.actions import Categorical
from descend.tasks.actor_critic import Advantage, AdvantageActorCritic
from descend.tasks.language_policy import LanguagePolicy, ProximalTokens
from descend.tasks.reinforce import MonteCarlo, Reinforce
from descend.tasks.trpo import TRPO, Trusted

B, T = 8, 4


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def nobody(act: object, seeds: object) -> dict[str, Tensor]:
    raise AssertionError("no episode is played here")


def model() -> ActorCritic:
    return ActorCritic(ActorCriticConfig(3, 2, 8, 1)).double()


def rollout() -> Batch:
    """Stretches without an end, and with one of each kind."""
    terminated, truncated = torch.zeros(2, B, T, dtype=torch.bool)
    terminated[1, 2] = truncated[2, 1] = True
    return {
        "observation": numbers(B, T, 3),
        "next": numbers(B, T, 3),
        "reward": numbers(B, T),
        "action": torch.randint(2, (B, T)),
        "terminated": terminated,
        "truncated": truncated,
    }


def episodes() -> Batch:
    """Whole episodes of different lengths; the last step of each is its end."""
    length = 1 + torch.arange(B) % T
    last = torch.arange(T) == length[:, None] - 1
    real = torch.arange(T) < length[:, None]
    cut = torch.arange(B)[:, None] % 3 == 0
    return {**rollout(), "terminated": last & ~cut, "truncated": last & cut, "real": real}


def learn_from(task: Reinforce | AdvantageActorCritic | TRPO, played: Batch) -> tuple[Task, Batch]:
    return task, task.look_back(played) | {"draw": torch.zeros(B, dtype=torch.long)}


def reinforce() -> tuple[Task, Batch]:
    return learn_from(Reinforce(model(), Categorical, MonteCarlo(entropy=0.1), nobody), episodes())


def actor_critic() -> tuple[Task, Batch]:
    task = AdvantageActorCritic(model(), Categorical, Advantage(n=2, entropy=0.1), nobody)
    return learn_from(task, rollout())


def trpo() -> tuple[Task, Batch]:
    task = TRPO(model().split(), Categorical, Trusted(epochs=2, minibatches=2), nobody, seed=0)
    return learn_from(task, rollout())


def language_policy() -> tuple[Task, Batch]:
    """Texts of different lengths: another number of tokens in every micro-batch."""
    tiny = GPT2Config(vocab=7, context=8, width=8, depth=1, heads=2, dropout=0.0)
    make = lambda: GPT2(tiny).double()
    numbers = ProximalTokens(entropy=0.1, epochs=2)
    task = LanguagePolicy(
        WithValues(make(), 8).double(), make(), TextScore(make(), 8).double(), numbers, lambda batch: batch
    )
    written = (torch.arange(6) > 1) & (torch.arange(6) < 3 + torch.arange(B)[:, None] % 4)
    return task, task.look_back({"tokens": torch.randint(7, (B, 6)), "written": written})


CASES: dict[str, Callable[[], tuple[Task, Batch]]] = {
    "AdvantageActorCritic": actor_critic,
    "LanguagePolicy": language_policy,
    "Reinforce": reinforce,
    "TRPO": trpo,
}
