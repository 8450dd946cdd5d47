"""Ensembles: the mean of several predictors, and bagging, which makes them differ.

    f̄(x) = (1/m) Σ_i f_i(x)
    (f̄ − y)² = (1/m) Σ_i (f_i − y)² − (1/m) Σ_i (f_i − f̄)²        ensemble error = mean error − disagreement
    bagging: member i is fitted to n examples drawn with replacement from the n

So the ensemble is never worse than the AVERAGE member; better than every member is usual, not guaranteed. A bootstrap
sample holds a share 1 − (1 − 1/n)ⁿ of the examples, → 1 − 1/e = 0.632. The examples that a member has not seen test it
for free: `out_of_bag`. Members may be anything that maps x to predictions: networks, trees, other ensembles.

Systems: ensembles-and-bagging
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from descend.errors import Mistake

Predictor = Callable[[Tensor], Tensor]
Learner = Callable[[Tensor, Tensor], Predictor]


class Ensemble:
    """The mean of its members' predictions: numbers (n), or probabilities (n, k)."""

    def __init__(self, members: Sequence[Predictor]):
        if not members:
            raise Mistake("an ensemble needs at least 1 member")
        self.members = list(members)

    def predictions(self, x: Tensor) -> Tensor:
        """Of every member: (m, n) or (m, n, k)."""
        return torch.stack([member(x) for member in self.members])

    def __call__(self, x: Tensor) -> Tensor:
        return self.predictions(x).mean(0)

    def vote(self, x: Tensor) -> Tensor:
        """The class that most members choose, for members that give (n, k); of equals the smallest."""
        chosen = self.predictions(x).argmax(-1)
        return torch.nn.functional.one_hot(chosen, int(chosen.max()) + 1).sum(0).argmax(-1)


class Ambiguity(NamedTuple):
    """ensemble = mean − disagreement"""

    individual: Tensor  # (m)
    mean: Tensor
    disagreement: Tensor
    ensemble: Tensor


def ambiguity(predictions: Tensor, y: Tensor) -> Ambiguity:
    """Mean squared errors of members (m, n) against y (n), of their mean, and how much the members differ from it."""
    mean = predictions.mean(0)
    individual = (predictions - y).square().mean(1)
    return Ambiguity(individual, individual.mean(), (predictions - mean).square().mean(), (mean - y).square().mean())


def bootstrap(n: int, random: torch.Generator) -> Tensor:
    """n rows drawn with replacement from n."""
    return torch.randint(n, (n,), generator=random)


def distinct_share(n: int) -> float:
    """1 − (1 − 1/n)ⁿ: the expected share of the n examples that a bootstrap sample holds."""
    return 1 - (1 - 1 / n) ** n


class Bagged(Ensemble):
    """An ensemble that remembers the rows (m, n) that each member was fitted to."""

    def __init__(self, members: Sequence[Predictor], rows: Tensor):
        super().__init__(members)
        self.rows = rows

    def out_of_bag(self, x: Tensor) -> Tensor:
        """For the training x: the mean over the members that have not seen the example; NaN where all have."""
        unseen = torch.ones(len(self.rows), len(x), dtype=torch.bool).scatter_(1, self.rows, False)
        said = self.predictions(x)
        weight = unseen.to(said.dtype).view(*unseen.shape, *[1] * (said.dim() - 2))
        return (weight * said).sum(0) / weight.sum(0)


def bag(learn: Learner, x: Tensor, y: Tensor, members: int, seed: int = 0) -> Bagged:
    """One member for each bootstrap sample of the examples x (n, ..), y (n)."""
    random = torch.Generator().manual_seed(seed)
    rows = torch.stack([bootstrap(len(x), random) for _ in range(members)]) if members else torch.empty(0, 0)
    return Bagged([learn(x[r], y[r]) for r in rows], rows)
