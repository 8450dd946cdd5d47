"""Gradient boosting with second-order leaves: each tree is fitted to what the present sum gets wrong.

    F_0 = the best constant;   F_t = F_{t−1} + ν tree_t;        g_i = ∂ℓ/∂F(x_i),  h_i = ∂²ℓ/∂F(x_i)²
    a leaf with G = Σ g, H = Σ h     value −G/(H + λ)
    a split into L and R             gain ½ (G_L²/(H_L + λ) + G_R²/(H_R + λ) − G²/(H + λ)) − γ; made if above 0

    squared loss ½ (F − y)²          g = F − y (minus the residual), h = 1: with λ = 0 a leaf is the mean residual
    logistic loss, y ∈ {0, 1}        g = σ(F) − y,  h = σ(F)(1 − σ(F))

ν is the shrinkage. DLN fits residuals and only names XGBoost; leaves, gain and shrinkage are those of Friedman (2001)
and Chen and Guestrin (2016). scikit-learn's `HistGradientBoosting` does the same on binned features, on all cores.

Systems: boosting
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.errors import Mistake


@dataclass(frozen=True)
class Tree:
    """A leaf with a value, or a split: left where x_j ≤ threshold."""

    value: float
    feature: int = 0
    threshold: float = 0.0
    branches: tuple[Tree, Tree] | None = None

    def __call__(self, x: Tensor) -> Tensor:
        if self.branches is None:
            return torch.full((len(x),), self.value, dtype=x.dtype)
        left, right = (branch(x) for branch in self.branches)
        return torch.where(x[:, self.feature] <= self.threshold, left, right)

    @property
    def leaves(self) -> int:
        return 1 if self.branches is None else sum(branch.leaves for branch in self.branches)


def leaf_value(g: Tensor, h: Tensor, lam: float) -> float:
    """−G/(H + λ); 0 where there is nothing to divide by."""
    bottom = float(h.sum()) + lam
    return -float(g.sum()) / bottom if bottom > 0 else 0.0


def worth(g: Tensor, h: Tensor, lam: float) -> Tensor:
    """½ G²/(H + λ): how much the best value of a leaf lowers the loss."""
    return g.square() / (2 * (h + lam).clamp_min(1e-12))


@dataclass(frozen=True)
class GradientBoosting:
    """The learner; `regress` and `classify` fit it."""

    rounds: int = 100
    depth: int = 3
    rate: float = 0.1
    """ν, the shrinkage."""
    lam: float = 1.0
    gamma: float = 0.0
    """Least gain of a split."""

    def __post_init__(self) -> None:
        if self.rounds < 0 or self.depth < 0 or self.lam < 0 or not 0 < self.rate <= 1:
            raise Mistake(f"{self}: rounds, depth and lam are at least 0, rate is above 0 and at most 1")

    def tree(self, x: Tensor, g: Tensor, h: Tensor, depth: int) -> Tree:
        """The tree of at most `depth` splits in a row that lowers Σ g f + ½ h f² + ½ λ f² most, split by split."""
        value = leaf_value(g, h, self.lam)
        if depth == 0 or len(x) < 2:
            return Tree(value)
        ordered, order = x.sort(dim=0, stable=True)
        below_g, below_h = g[order].cumsum(0)[:-1], h[order].cumsum(0)[:-1]
        total_g, total_h = g.sum(), h.sum()
        parts = worth(below_g, below_h, self.lam) + worth(total_g - below_g, total_h - below_h, self.lam)
        gain = parts - worth(total_g, total_h, self.lam) - self.gamma
        gain = gain.masked_fill(ordered[1:] == ordered[:-1], -torch.inf)  # equal values cannot be parted
        j, i = divmod(int(gain.T.argmax()), len(gain))  # of equal gains the first feature
        if not float(gain[i, j]) > 1e-12 * float(parts[i, j]):  # what is left is rounding
            return Tree(value)
        low, high = float(ordered[i, j]), float(ordered[i + 1, j])
        middle = low + (high - low) / 2
        threshold = middle if middle < high else low
        left = x[:, j] <= threshold
        branches = [self.tree(x[side], g[side], h[side], depth - 1) for side in (left, ~left)]
        return Tree(value, j, threshold, (branches[0], branches[1]))

    def regress(self, x: Tensor, y: Tensor) -> Sum:
        """Numbers y (n) from features x (n, d), squared loss."""
        model = Sum(float(y.mean()), self.rate, [])
        score = torch.full_like(y, model.start)
        for _ in range(self.rounds):
            tree = self.tree(x, score - y, torch.ones_like(y), self.depth)
            model.trees.append(tree)
            score = score + self.rate * tree(x)
        return model

    def classify(self, x: Tensor, y: Tensor) -> Sum:
        """The logit of y = 1 from features x (n, d) and classes y (n) of 0 and 1, logistic loss."""
        if not 0 < float(y.mean()) < 1 or not bool(((y == 0) | (y == 1)).all()):
            raise Mistake("gradient boosting: the classes must be 0 and 1, and both must occur")
        model = Sum(float(y.mean().logit()), self.rate, [])
        score = torch.full_like(y, model.start)
        for _ in range(self.rounds):
            p = score.sigmoid()
            tree = self.tree(x, p - y, p * (1 - p), self.depth)
            model.trees.append(tree)
            score = score + self.rate * tree(x)
        return model


@dataclass
class Sum:
    """F(x) = F_0 + ν Σ_t tree_t(x)"""

    start: float
    rate: float
    trees: list[Tree]

    def stages(self, x: Tensor) -> Tensor:
        """F_0 .. F_T at x: (rounds + 1, n)."""
        first = torch.full((len(x),), self.start, dtype=x.dtype)
        return torch.stack([first, *(self.rate * tree(x) for tree in self.trees)]).cumsum(0)

    def __call__(self, x: Tensor) -> Tensor:
        return self.stages(x)[-1]
