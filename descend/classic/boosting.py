"""Boosting (AdaBoost): weak learners in turn, each on examples reweighted towards those that were wrong.

    w_i = 1/n;   for t = 1..T:
    h_t  fitted to the weights w                       ε_t = Σ_i w_i [h_t(x_i) ≠ y_i]                y_i, h_t ∈ {−1, +1}
    α_t = ½ log((1 − ε_t)/ε_t)                         w_i ← w_i exp(−α_t y_i h_t(x_i)) / Σ
    H(x) = sign Σ_t α_t h_t(x)                         a weighted majority vote

After the update h_t is worth nothing on the new weights: wrong and right examples weigh ½ each. The share of wrong
training examples is at most ∏_t 2√(ε_t(1 − ε_t)). DLN gives the reweighting in words; the weights are those of Freund
and Schapire (1997). scikit-learn's `AdaBoostClassifier` is the same with 2 α_t.

Systems: boosting
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from descend.errors import Mistake

Predictor = Callable[[Tensor], Tensor]
WeightedLearner = Callable[[Tensor, Tensor, Tensor], Predictor]


@dataclass(frozen=True)
class Stump:
    """A tree with one split: `sign` where x_j > threshold, −sign elsewhere."""

    feature: int
    threshold: float
    sign: int

    def __call__(self, x: Tensor) -> Tensor:
        return self.sign * torch.where(x[:, self.feature] > self.threshold, 1.0, -1.0).to(x.dtype)


def best_stump(x: Tensor, y: Tensor, w: Tensor) -> Stump:
    """The stump of least weighted error, over all features and all cuts at once."""
    ordered, order = x.sort(dim=0, stable=True)
    signed = (w * y)[order]
    # Σ_i w_i y_i h(x_i) with +1 above the cut: all of Σ w y, minus twice the part below it.
    edge = (w * y).sum() - 2 * signed.cumsum(0)
    cut = torch.cat([ordered[1:] > ordered[:-1], torch.ones(1, x.shape[1], dtype=torch.bool)])  # the last: one class
    best = int(torch.where(cut, edge.abs(), -1.0).argmax())
    i, j = divmod(best, x.shape[1])
    low = float(ordered[i, j])
    high = float(ordered[i + 1, j]) if i + 1 < len(x) else math.inf
    middle = low + (high - low) / 2 if math.isfinite(high) else low
    return Stump(j, middle if middle < high else low, 1 if edge[i, j] >= 0 else -1)


@dataclass
class Boosted:
    """sign Σ_t α_t h_t(x), with the history of its making."""

    learners: list[Predictor] = field(default_factory=list)
    alphas: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)  # ε_t
    weights: list[Tensor] = field(default_factory=list)  # w before round t, and after the last

    def margins(self, x: Tensor) -> Tensor:
        """Σ_{s≤t} α_s h_s(x) after every round: (rounds, n)."""
        votes = torch.stack([a * h(x) for a, h in zip(self.alphas, self.learners, strict=True)])
        return votes.cumsum(0)

    def __call__(self, x: Tensor) -> Tensor:
        """The class of each row, −1 or +1."""
        return torch.where(self.margins(x)[-1] >= 0, 1.0, -1.0).to(x.dtype)


def reweigh(w: Tensor, alpha: float, y: Tensor, h: Tensor) -> Tensor:
    """w_i exp(−α y_i h_i), normalised."""
    w = w * (-alpha * y * h).exp()
    return w / w.sum()


def adaboost(x: Tensor, y: Tensor, rounds: int, learn: WeightedLearner = best_stump) -> Boosted:
    """Boost `learn(x, y, w)` on features x (n, d) and classes y (n) of −1 and +1.

    It ends early when a learner makes no mistake (it is then alone right), or is no better than a guess.
    """
    if rounds < 1 or not bool((y.abs() == 1).all()):
        raise Mistake("adaboost: give at least 1 round, and classes that are -1 and +1")
    w = torch.full_like(y, 1 / len(y))
    model = Boosted(weights=[w])
    for _ in range(rounds):
        learner = learn(x, y, w)
        h = learner(x)
        error = float(w[h != y].sum())
        if error == 0:
            return Boosted([learner], [1.0], [0.0], [w])
        if error >= 0.5 and model.learners:
            return model
        alpha = 0.5 * math.log((1 - error) / error)
        w = reweigh(w, alpha, y, h)
        model.learners.append(learner)
        model.alphas.append(alpha)
        model.errors.append(error)
        model.weights.append(w)
    return model
