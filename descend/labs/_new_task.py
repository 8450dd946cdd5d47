"""A small language model that knows six letter tasks, and a seventh to learn: what the labs of adapters train.

    s = [t, x_1 .. x_n, =, y_1 .. y_n]       y_i = σ_t(x_{π_t(i)})       π_t an order of places, σ_t one of the letters

Known are four orders with the letters as they are, and two shifts of the letters. The new task has an order and a
permutation of the letters that are drawn by the seed; its mark t was never read before.

The weights begin as N(0, 1/width). With the 0.02 of large models, layers of this width add next to nothing and
attention looks everywhere alike, so that training stands still at first, and on some seeds for long.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from descend.labs._train import train
from descend.models.llama import Llama, LlamaConfig

LETTERS, LENGTH, KNOWN = 12, 5, 6
NEW = KNOWN  # the number of the new task
EQUALS = LETTERS + KNOWN + 1
WIDTH, DEPTH, HEADS, CONTEXT = 64, 2, 4, 32
BATCH, ASKED, RATE = 32, 512, 5e-3
KNOWING = 0.98  # letters right of every known task, at least


class Choice(Protocol):
    """An adapter to be given to a model (`descend.kinds.adapters`)."""

    def apply(self, model: Any) -> Any: ...


@dataclass(frozen=True)
class Tasks:
    """π (tasks, n) and σ (tasks, letters)."""

    orders: Tensor
    letters: Tensor

    def draw(self, tasks: Tensor, count: int, chance: torch.Generator) -> Tensor:
        """Sequences s (count, 2n + 2), each of one of the tasks."""
        x = torch.randint(LETTERS, (count, LENGTH), generator=chance)
        t = tasks[torch.randint(len(tasks), (count,), generator=chance)]
        y = self.letters[t].gather(1, x.gather(1, self.orders[t]))
        return torch.cat([LETTERS + t[:, None], x, torch.full((count, 1), EQUALS), y], dim=1)


@dataclass(frozen=True)
class Tuned:
    """A model that learned the new task."""

    model: Any
    losses: list[float]
    right: float
    """Share of letters that are right."""


def draw_tasks(seed: int) -> Tasks:
    """The known tasks and the new one."""
    chance = torch.Generator().manual_seed(seed)
    places, letters = torch.arange(LENGTH), torch.arange(LETTERS)
    orders = [places, places.flip(0), places.roll(1), places.roll(-2), places, places]
    sigmas = [letters] * 4 + [(letters + 1) % LETTERS, (letters + 5) % LETTERS]
    new = torch.randperm(LENGTH, generator=chance), torch.randperm(LETTERS, generator=chance)
    return Tasks(torch.stack([*orders, new[0]]), torch.stack([*sigmas, new[1]]))


def pretrain(tasks: Tasks, steps: int, seed: int) -> Llama:
    """The model that knows the known tasks."""
    torch.manual_seed(seed)
    sizes = LlamaConfig(EQUALS + 1, CONTEXT, WIDTH, DEPTH, HEADS, HEADS, 2 * WIDTH, tied=True, spread=WIDTH**-0.5)
    model = Llama(sizes)
    learn(model, fresh(tasks, torch.arange(KNOWN), seed), steps, RATE)
    return model.eval()


def fresh(tasks: Tasks, which: Tensor, seed: int) -> Callable[[], Tensor]:
    """New sequences at every call."""
    chance = torch.Generator().manual_seed(seed)
    return lambda: tasks.draw(which, BATCH, chance)


def repeat(tasks: Tasks, examples: int, seed: int) -> Callable[[], Tensor]:
    """Batches of a set of so many sequences of the new task."""
    chance = torch.Generator().manual_seed(seed)
    kept = tasks.draw(torch.tensor([NEW]), examples, chance)
    return lambda: kept[torch.randint(examples, (BATCH,), generator=chance)]


def answer_loss(model: nn.Module, s: Tensor) -> Tensor:
    """The loss of a letter of the answers."""
    return cross_entropy(model(s[:, :-1])[:, LENGTH + 1 :].flatten(0, 1), s[:, LENGTH + 2 :].flatten())


def learn(model: nn.Module, batches: Callable[[], Tensor], steps: int, rate: float) -> list[float]:
    """The losses on the way."""
    return train(model, lambda: answer_loss(model, batches()), steps, rate)


@torch.no_grad()
def share_right(model: nn.Module, tasks: Tasks, which: int) -> float:
    """Letters of held-out answers that are the most likely ones."""
    s = tasks.draw(torch.tensor([which]), ASKED, torch.Generator().manual_seed(1_000_003))
    return float((model(s[:, :-1])[:, LENGTH + 1 :].argmax(-1) == s[:, LENGTH + 2 :]).float().mean())


def tune(
    base: Llama, choice: Choice | None, tasks: Tasks, steps: int, rate: float, seed: int, examples: int = 0
) -> Tuned:
    """A copy of the base, or an adapter on it, taught the new task; from so many examples, or always new ones."""
    torch.manual_seed(seed)
    model: Any = copy.deepcopy(base)
    model = model if choice is None else choice.apply(model)
    batches = repeat(tasks, examples, seed + 1) if examples else fresh(tasks, torch.tensor([NEW]), seed + 1)
    losses = learn(model.train(), batches, steps, rate)
    return Tuned(model.eval(), losses, share_right(model, tasks, NEW))


def know(base: Llama, tasks: Tasks) -> float:
    """Letters right of the known task that is known the least."""
    return min(share_right(base, tasks, which) for which in range(KNOWN))
