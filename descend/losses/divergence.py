"""The Kullback-Leibler divergence from a prediction x to a target distribution y; one value for each example.

    ℓ = KL(y ‖ x) = Σ_i y_i (log y_i − log x_i)          0 log 0 = 0;  ∞ where y_i > 0 = x_i          ∂ℓ/∂ log x = −y

The prediction comes as probabilities (`kl_of_probabilities`, the x of DLN) or as log-probabilities (`kl`, what torch's
kl_div expects; after log_softmax finite for logits of ±1e4). Erratum: DLN calls torch's x a probability; torch then
gives a wrong, even negative number without a word, so `kl` refuses logarithms above 0. torch's default mean divides by
all elements; the mean of the values here is the divergence ("batchmean").

Systems: kl-div-loss
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from descend.losses.checks import extremes, not_negative, refuse, same_shape

ROUNDING = 1e-3  # a logarithm so little above 0 is a rounded 0


def kl(log_x: Tensor, y: Tensor) -> Tensor:
    """Σ_i y_i (log y_i − log x_i) from log-probabilities: (.., k), (.., k) -> (..)."""
    same_shape(log_x, y, "predicted and target distributions")
    low, high = extremes(log_x)
    if ROUNDING < high < math.inf:
        refuse(log_x > ROUNDING, log_x, "log-probability {} is above 0; give kl_of_probabilities the probabilities")
    full = not_negative(y)
    if low == -math.inf and not full:  # 0 · −∞ = 0
        log_x = torch.where(y == 0, 0.0, log_x)
    return sum_terms(log_x, y, full)


def kl_of_probabilities(x: Tensor, y: Tensor) -> Tensor:
    """Σ_i y_i (log y_i − log x_i) from probabilities: (.., k), (.., k) -> (..)."""
    same_shape(x, y, "predicted and target distributions")
    full = not_negative(y)
    if not (not_negative(x) or full):  # 0 log 0 = 0, and its derivative 0/0 is 0: log 1 is taken where y is 0
        x = torch.where(y == 0, 1.0, x)
    return sum_terms(x.log(), y, full)


def sum_terms(log_x: Tensor, y: Tensor, full: bool) -> Tensor:
    """The sum over i; `full` says that no y_i is 0, which spares the slower 0 log 0."""
    return (y * (y.log() - log_x) if full else y.xlogy(y) - y * log_x).sum(-1)


def kl_of_logarithms(log_x: Tensor, log_y: Tensor) -> Tensor:
    """The same when the target comes as log-probabilities too (a teacher's log_softmax)."""
    same_shape(log_x, log_y, "predicted and target distributions")
    return (log_y.exp() * (log_y - log_x)).sum(-1)
