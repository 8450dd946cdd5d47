"""What frozen vectors are worth without training on: the labels of the nearest ones, and how far they spread.

    k-NN       ŷ(x) = argmax_c Σ_{i among the k most similar, y_i = c} exp(cos(x, x_i) / τ)         τ = 0.07
    spread     √d · (1/d) Σ_c std(x̂_c), x̂ of length 1         1 for vectors in every direction, 0 when all are the same
    rank       exp(−Σ_i p_i log p_i), p = σ / Σ σ of the centred vectors        how many directions are really in use

A representation that has collapsed maps every input to the same vector: its spread is 0 and its rank 1, whatever the
loss says. SimSiam's paper watches the first: std ≈ 1/√d is healthy.

Systems: simsiam, byol
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from descend.metrics.probe import linear_probe, with_one


def classify_by_neighbours(x: Tensor, known: Tensor, y: Tensor, k: int = 20, tau: float = 0.07) -> Tensor:
    """The classes of x (n, d) by their nearest among known (m, d), of classes y (m): -> (n)."""
    scores = normalize(x.double(), dim=1) @ normalize(known.double(), dim=1).T
    value, index = scores.topk(min(k, len(known)), dim=1)
    votes = (value / tau).exp()[:, :, None] * one_hot(y[index], int(y.max()) + 1)
    return votes.sum(1).argmax(1)


def neighbour_accuracy(x: Tensor, y: Tensor, known: Tensor, labels: Tensor, k: int = 20) -> float:
    """Share of x (n, d) whose class y (n) its neighbours among known (m, d) tell rightly."""
    return float((classify_by_neighbours(x, known, labels, k) == y).double().mean())


def fitted_probe_accuracy(x: Tensor, y: Tensor, known: Tensor, labels: Tensor, ridge: float = 1e-3) -> float:
    """Share of x (n, d) that a linear probe fitted to known vectors (m, d) reads rightly; features are standardized."""
    mean, std = known.double().mean(0), known.double().std(0).clamp(min=1e-12)
    x, known = (x.double() - mean) / std, (known.double() - mean) / std
    found = with_one(x) @ linear_probe(known, labels, ridge)
    return float((found.argmax(1) == y).double().mean())


def spread(x: Tensor) -> float:
    """√d times the mean standard deviation of the coordinates of x / ‖x‖: (n, d)."""
    unit = normalize(x.double(), dim=1)
    return float(unit.std(dim=0, correction=0).mean() * x.shape[1] ** 0.5)


def effective_rank(x: Tensor) -> float:
    """e to the entropy of the singular values of the centred vectors (n, d); 1 when nothing varies."""
    sigma = torch.linalg.svdvals(x.double() - x.double().mean(0))
    if sigma.sum() <= 1e-12:
        return 1.0
    p = sigma / sigma.sum()
    return float(torch.exp(torch.special.entr(p).sum()))


def find_nearest(x: Tensor, known: Tensor, k: int) -> Tensor:
    """Rows of the k most similar known vectors (m, d) of each x (n, d), the nearest first: (n, k)."""
    scores = normalize(x.double(), dim=1) @ normalize(known.double(), dim=1).T
    return scores.topk(min(k, len(known)), dim=1).indices
