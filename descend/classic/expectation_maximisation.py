"""Expectation-maximisation: coordinate ascent on the evidence lower bound of a model with a hidden class z.

    ELBO(q, θ) = Σ_n Σ_k q_nk (log p_θ(x_n, k) − log q_nk) = Σ_n log p_θ(x_n) − Σ_n KL(q_n ‖ p_θ(z | x_n))
    E step     q_nk = p_θ(k | x_n)                           the best q for θ: the bound is tight, ELBO = log-likelihood
    M step     θ = argmax_θ Σ_n Σ_k q_nk log p_θ(x_n, k)     the best θ for q: a weighted maximum-likelihood fit

Neither step can lower the ELBO, so the log-likelihood never falls. It rises to a local maximum: which one is decided by
the start. The M step is the model's own; here it is passed in.

Systems: expectation-maximisation
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor


class HiddenClass(Protocol):
    """A model p(x, z) with z one of k classes."""

    def log_joint(self, x: Tensor) -> Tensor:
        """log p(x_n, k): (n, k)"""


Model = TypeVar("Model", bound=HiddenClass)


@dataclass(frozen=True)
class Fit(Generic[Model]):
    """The model at the end, and the way there."""

    model: Model
    after_e: tuple[float, ...]
    """ELBO after each E step: the log-likelihood of the model so far."""
    after_m: tuple[float, ...]
    """ELBO after each M step, with the q of the E step before it."""
    converged: bool


def elbo(log_joint: Tensor, q: Tensor) -> Tensor:
    """Σ_n Σ_k q_nk (log p(x_n, k) − log q_nk), with 0 log 0 = 0."""
    return torch.where(q > 0, q * (log_joint - q.log()), 0.0).sum()


def maximise_expectation(
    x: Tensor, start: Model, refit: Callable[[Tensor, Tensor], Model], steps: int = 200, gain: float = 1e-9
) -> Fit[Model]:
    """EM from `start` on x (n, d); refit(x, q) is the M step. It ends when an M step gains less than n · `gain`."""
    if steps < 1:
        raise ValueError(f"{steps} steps: at least 1")
    model, after_e, after_m = start, list[float](), list[float]()
    for _ in range(steps):
        log_joint = model.log_joint(x)
        q = log_joint.softmax(dim=1)
        after_e.append(elbo(log_joint, q).item())
        model = refit(x, q)
        after_m.append(elbo(model.log_joint(x), q).item())
        if after_m[-1] - after_e[-1] < gain * len(x):
            return Fit(model, tuple(after_e), tuple(after_m), True)
    return Fit(model, tuple(after_e), tuple(after_m), False)
