"""Imitation: a policy learns to plan what was demonstrated, and is judged by the episodes that it plays.

    regression    E |a − â| or (a − â)²                      behaviour cloning: the median or the mean of what was shown
    variational   E |a − â| + β KL(q(z|s, a) ‖ N(0, I))      ACT
    denoising     E (a − f_θ(√ᾱ_t a + √(1 − ᾱ_t) ε, t, s))²   Diffusion Policy; or the noise ε, or v, as its plan says

Means are over the T · 7 numbers of a chunk, in standardized units. Random numbers come with the batch: `noise`, `time`.
A batch with seeds is a batch of episodes to be played: `play(plan, seeds)` gives what each is worth (success, ..). One
of held-out demonstrations is scored by the loss, and by `error`, the mean absolute error of the plan in its own units.

Systems: act-policy, diffusion-policy, vla-policy
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Chance, Loss, Move, Task
from descend.losses.diffusion import noise_prediction_loss
from descend.losses.regression import absolute_error
from descend.ops.diffusion.kernels import add_noise
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.prediction import target_of

Play = Callable[[Callable[[Batch, Chance], Tensor], Sequence[int]], dict[str, Tensor]]


class BatchChance:
    """Random numbers for held-out demonstrations: those that came with the batch, or none are needed."""

    def __init__(self, batch: Batch):
        self.batch = batch

    @property
    def count(self) -> int:
        return len(self.batch["state"])

    def normal(self, *shape: int) -> Tensor:
        return self.batch["noise"].view(self.count, *shape)

    def uniform(self, *shape: int) -> Tensor:
        raise NotImplementedError("a policy draws from the normal distribution")


class Imitation(Task):
    """A batch is states, chunks (and images, tokens, random numbers), or seeds of episodes."""

    def __init__(self, model: nn.Module, play: Play):
        super().__init__()
        self.model: Any = model
        self.play = play

    @abstractmethod
    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """The terms of each example (b)."""

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: Loss({name: term.mean() for name, term in self.losses(batch).items()}))

    def plan(self, seen: Batch, chance: Chance) -> Tensor:
        """The next actions, wherever the network lives."""
        device = next(self.model.parameters()).device
        found: Tensor = self.model.plan({name: x.to(device) for name, x in seen.items()}, chance)
        return found.cpu()

    @torch.no_grad()
    def score(self, batch: Batch) -> dict[str, Tensor]:
        if "seed" in batch:
            return self.play(self.plan, batch["seed"].tolist())
        terms = self.losses(batch)
        off = absolute_error(self.model.plan(batch, BatchChance(batch)), batch["chunk"])
        return {"loss": torch.stack([*terms.values()]).sum(dim=0), "error": off.flatten(1).mean(dim=1)}


class Regresses(Protocol):
    """A policy whose plan is an estimate of the actions, in standardized units."""

    def estimate(self, seen: Batch) -> Tensor: ...

    def standardize(self, chunk: Tensor) -> Tensor: ...


class CloneBehaviour(Imitation):
    """Regression: the error of each number is given, absolute or squared."""

    def __init__(self, model: nn.Module, play: Play, error: Callable[[Tensor, Tensor], Tensor]):
        super().__init__(model, play)
        self.error = error

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        off = self.error(self.model.estimate(batch), self.model.standardize(batch["chunk"]))
        return {"loss": off.flatten(1).mean(dim=1)}


class CloneByStyle(Imitation):
    """ACT: L1 reconstruction of a conditional variational autoencoder, and β KL."""

    def __init__(self, model: nn.Module, play: Play, beta: float):
        super().__init__(model, play)
        self.beta = beta

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        found = self.model(batch["state"], batch["chunk"], batch["noise"], batch.get("image"))
        off = absolute_error(found.actions, self.model.standardize(batch["chunk"]))
        return {"l1": off.flatten(1).mean(dim=1), "kl": self.beta * found.kl}


class CloneByDenoising(Imitation):
    """Diffusion Policy: what is under the noise of a chunk, at a random level of it."""

    def __init__(self, model: nn.Module, play: Play, noise: Plan):
        super().__init__(model, play)
        self.noise = noise

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        levels, predicts = self.noise.noise, self.noise.predicts
        x, eps = self.model.standardize(batch["chunk"]), batch["noise"]
        t = (batch["time"] * levels.steps).long().clamp(max=levels.steps - 1)
        abar = levels.at(t, x)
        said = self.model(add_noise(x, eps, abar), t, batch["state"], batch.get("image"))
        return {"loss": noise_prediction_loss(said, target_of(predicts, x, eps, abar)) / x[0].numel()}
