"""Which examples a step sees, and how noisy its gradient is.

    full batch   g = (1/m) Σ_i ∇L_i            mini-batch   g_B = (1/B) Σ_{i ∈ batch} ∇L_i            SGD   B = 1
    E[g_B] = g;    Var[g_B] = σ²/B with replacement, (σ²/B) (m − B)/(m − 1) without
    θ ← θ − η g_B;  with the SUM over the batch (DLD 2.2) the same step needs η / B;  linear scaling: η = η₀ B / B₀

DLN draws with replacement; an epoch without replacement sees every example once. A constant η leaves the iterate
bouncing around the minimum with a variance that goes with η / B.

Systems: stochastic-and-minibatch-gd
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from descend.errors import Mistake


def with_replacement(m: int, batch: int, random: torch.Generator) -> Iterator[Tensor]:
    """Indices of batches without end, every example drawn independently."""
    while True:
        yield torch.randint(m, (batch,), generator=random)


def without_replacement(m: int, batch: int, random: torch.Generator) -> Iterator[Tensor]:
    """Indices of batches without end, every example once an epoch; the rest of an epoch too short is left out."""
    if not 1 <= batch <= m:
        raise Mistake(f"a batch of {batch} from {m} examples: give 1 to {m}")
    while True:
        yield from torch.randperm(m, generator=random)[: m - m % batch].split(batch)


def draw_balanced(labels: Tensor, batch: int, random: torch.Generator) -> Iterator[Tensor]:
    """Indices of batches without end in which every class has the same probability."""
    _, kind, counts = labels.unique(return_inverse=True, return_counts=True)
    weights = 1 / counts[kind].double()
    while True:
        yield torch.multinomial(weights, batch, replacement=True, generator=random)


def example_gradients(loss: Callable[[Tensor], Tensor], theta: Tensor) -> Tensor:
    """∇L_i (m, n) of a loss that gives one value for each example."""
    return torch.autograd.functional.jacobian(loss, theta)


def batch_gradient(gradients: Tensor, indices: Tensor) -> Tensor:
    """The mean of the batch's gradients."""
    return gradients[indices].mean(0)


def batch_sum(gradients: Tensor, indices: Tensor) -> Tensor:
    """The sum of the batch's gradients, as DLD writes the loss."""
    return gradients[indices].sum(0)


def variance_with_replacement(gradients: Tensor, batch: int) -> Tensor:
    """σ² / B of each component."""
    return gradients.var(0, correction=0) / batch


def variance_without_replacement(gradients: Tensor, batch: int) -> Tensor:
    """(σ² / B) (m − B) / (m − 1) of each component; 0 for the full batch."""
    m = len(gradients)
    return variance_with_replacement(gradients, batch) * (m - batch) / (m - 1)


def scaled_rate(lr: float, batch: int, base: int) -> float:
    """The learning rate at another batch size by the linear rule: η₀ B / B₀."""
    return lr * batch / base
