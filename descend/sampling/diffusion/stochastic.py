"""Solvers of stochastic differential equations dx = f(x, t) dt + g(x, t) dw, also backwards in time.

    Euler-Maruyama    x ← x + f Δt + g ΔW,   ΔW ~ N(0, |Δt|)                   strong order ½, weak order 1
    Milstein          .. + ½ g g' (ΔW² − |Δt|)                                 strong order 1; g' = ∂g/∂x (diagonal g)
    Runge-Kutta       x̂ = x + f Δt + g √|Δt|;  .. + (g(x̂) − g) (ΔW² − |Δt|) / 2√|Δt|    strong order 1, no derivative

Where g depends on t alone, g' = 0 and g(x̂) = g: all three are one method. Δt < 0 solves the reverse SDE. The last
method is Platen's explicit scheme; DLN-C.159 names Milstein and a stochastic Runge-Kutta without a formula.

Systems: sde-solvers, score-sde
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from descend.errors import Mistake, nearest
from descend.ops.diffusion.schedule import spread
from descend.ops.diffusion.sde import SDE

Field = Callable[[Tensor, float], Tensor]
"""(x, t) -> a value for each number of x"""
Score = Callable[[Tensor, Tensor], Tensor]
"""(x (b, ..), t (b)) -> ∇ log p_t(x)"""


def euler_maruyama(f: Field, g: Field, x: Tensor, t: float, dt: float, dw: Tensor) -> Tensor:
    """x + f Δt + g ΔW"""
    return x + f(x, t) * dt + g(x, t) * dw


def milstein(f: Field, g: Field, x: Tensor, t: float, dt: float, dw: Tensor) -> Tensor:
    """With ½ g g' (ΔW² − |Δt|), g' by autograd; each number of x has noise of its own."""
    with torch.enable_grad():
        at = x.detach().requires_grad_()
        value = g(at, t)
        slope = torch.autograd.grad(value.sum(), at)[0] if value.requires_grad else torch.zeros_like(x)
    value = value.detach()
    return x + f(x, t) * dt + value * dw + 0.5 * value * slope * (dw.square() - abs(dt))


def runge_kutta(f: Field, g: Field, x: Tensor, t: float, dt: float, dw: Tensor) -> Tensor:
    """Platen's scheme: Milstein's without a derivative."""
    drift, value, root = f(x, t), g(x, t), math.sqrt(abs(dt))
    ahead = g(x + drift * dt + value * root, t)
    return x + drift * dt + value * dw + (ahead - value) * (dw.square() - abs(dt)) / (2 * root)


METHODS = {"euler-maruyama": euler_maruyama, "milstein": milstein, "runge-kutta": runge_kutta}


def solve_sde(
    f: Field, g: Field, x: Tensor, times: Sequence[float], noise: Callable[[], Tensor], method: str = "euler-maruyama"
) -> Iterator[Tensor]:
    """x after each step from one time to the next; `noise` draws N(0, 1) in the shape of x for each."""
    if method not in METHODS:
        raise Mistake(f"--method {method!r} is not known.{nearest(method, METHODS)} Known: {', '.join(METHODS)}")
    step = METHODS[method]
    for here, there in pairwise(times):
        dt = there - here
        x = step(f, g, x, here, dt, math.sqrt(abs(dt)) * noise())
        yield x


def reverse_times(steps: int, last: float = 0.0) -> list[float]:
    """1 .. `last` in equal steps: Δt < 0."""
    return torch.linspace(1, last, steps + 1, dtype=torch.float64).tolist()


def sample_sde(
    sde: SDE,
    score: Score,
    x: Tensor,
    noise: Callable[[], Tensor],
    steps: int = 1000,
    method: str = "euler-maruyama",
    last: float = 0.0,
) -> Iterator[Tensor]:
    """The reverse SDE from x ~ prior at t = 1 to the data: dx = [f − g² score] dt + g dw̄, dt < 0."""

    def drift(x: Tensor, t: float) -> Tensor:
        time = torch.full((len(x),), t, dtype=x.dtype, device=x.device)
        return sde.reverse_drift(x, time, score(x, time))

    def diffusion(x: Tensor, t: float) -> Tensor:
        return spread(sde.diffusion(torch.full((len(x),), t, dtype=x.dtype, device=x.device)), x)

    return solve_sde(drift, diffusion, x, reverse_times(steps, last), noise, method)


def score_of_noise(sde: SDE, eps: Callable[[Tensor, Tensor], Tensor]) -> Score:
    """−ε / s_t: the score of a network that predicts the noise in continuous time."""

    def score(x: Tensor, t: Tensor) -> Tensor:
        return -eps(x, t) / spread(sde.marginal(t)[1], x)

    return score
