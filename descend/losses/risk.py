"""From losses to the number that is minimised. The losses of this folder are never reduced; here is how they are.

    ℓ_i = Σ_k ℓ_ik                                  an example that has several outputs (MF 4.2)
    R(θ) = (1/m) Σ_{i=0}^{m−1} ℓ(f_θ(x_i), y_i)     the empirical risk: the MEAN, a proxy for the risk E ℓ
    Σ_i ℓ_i                                         the SUM of DLD 2.2: the same minimum, gradients m times as long
    Σ_i w_i ℓ_i / Σ_i w_i                           weighted: by class, or 0 for padding (the weights' sum, not m)

∇R is the mean of the examples' gradients, so it can be gathered batch by batch. Erratum: DLN prints the sum as
i = 0 .. m, m + 1 terms divided by m; the last index is m − 1.

Systems: empirical-risk
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.losses.checks import extremes, same_shape


def per_example(losses: Tensor) -> Tensor:
    """Σ_k ℓ_ik: the losses of all outputs of an example, (b, ..) -> (b)."""
    return losses.flatten(1).sum(1) if losses.dim() > 1 else losses


def empirical_risk(losses: Tensor) -> Tensor:
    """(1/m) Σ_i ℓ_i"""
    return losses.mean()


def summed_risk(losses: Tensor) -> Tensor:
    """Σ_i ℓ_i"""
    return losses.sum()


def weighted_risk(losses: Tensor, weight: Tensor) -> Tensor:
    """Σ_i w_i ℓ_i / Σ_i w_i; what has weight 0 is left out."""
    same_shape(losses, weight, "losses and weights")
    total = weight.sum()
    if extremes(total) == (0, 0):
        raise Mistake("the weights add up to 0: no record is left to average over")
    return (weight * losses).sum() / total


def risk_of(
    model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]], loss: Callable[[Tensor, Tensor], Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """R(θ) over batches (x, y) of any sizes, and ∇R for each parameter; one batch is in memory at a time."""
    trained = [p for p in model.parameters() if p.requires_grad]
    gradients = [torch.zeros_like(p) for p in trained]
    total, m = torch.zeros((), dtype=torch.float64), 0
    for x, y in batches:
        losses = per_example(loss(model(x), y))
        torch._foreach_add_(gradients, torch.autograd.grad(losses.sum(), trained))
        total, m = total + losses.detach().double().sum().cpu(), m + len(losses)
    if not m:
        raise Mistake("there is no record to take the risk of: the batches are empty")
    torch._foreach_div_(gradients, m)
    return total / m, gradients
