"""The probability flow: an ODE with the marginals of the SDE, so that every example has one noise, and a likelihood.

    dx/dt = f(x, t) − ½ g(t)² s(x, t)                         encode: t from 0 to 1, decode: back
    log p_0(x(0)) = log p_1(x(1)) + ∫_0^1 ∇·ẋ dt              the instantaneous change of variables
    ∇·ẋ = tr ∂ẋ/∂x, exactly (one backward pass for each number), or E vᵀ (∂ẋ/∂x) v with random signs v (Hutchinson)

With a trained score it is a continuous normalizing flow. Adaptive steps are those of `ops/ode`.

Systems: probability-flow-ode, score-sde
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from descend.ops.diffusion.sde import SDE
from descend.ops.ode.solve import Solution, odeint

Score = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class ProbabilityFlow:
    """The flow of an SDE and a score(x, t). `first` > 0 begins above t = 0, where a score may have no limit."""

    sde: SDE
    score: Score
    method: str = "dopri5"
    rtol: float = 1e-5
    atol: float = 1e-6
    steps: int = 100
    """Of a method with fixed steps."""
    first: float = 0.0

    def velocity(self, x: Tensor, t: float) -> Tensor:
        """ẋ at one time."""
        time = torch.full((len(x),), t, dtype=x.dtype, device=x.device)
        return self.sde.flow(x, time, self.score(x, time))

    def encode(self, x: Tensor) -> Tensor:
        """The noise x(1) of data x(0)."""
        return self.follow(x, self.first, 1.0).last

    def decode(self, z: Tensor) -> Tensor:
        """The data x(0) of noise x(1) ~ prior."""
        return self.follow(z, 1.0, self.first).last

    def follow(self, x: Tensor, start: float, end: float) -> Solution:
        """From one time to another; `evaluations` and all points of fixed steps are in the solution."""
        return odeint(lambda t, z: self.velocity(z, t), x, self.times(start, end), self.method, self.rtol, self.atol)

    def times(self, start: float, end: float) -> list[float]:
        adaptive = self.method in ("dopri5", "rkf45")
        count = 1 if adaptive else self.steps
        return torch.linspace(start, end, count + 1, dtype=torch.float64).tolist()

    def log_prob(self, x: Tensor, signs: Tensor | None = None) -> Tensor:
        """log p_0(x) (b). `signs` ±1 in the shape of x: Hutchinson's estimate of the trace; None: exactly."""
        z, change = self.encode_with_change(x, signs)
        return self.sde.prior_log_prob(z) + change

    def encode_with_change(self, x: Tensor, signs: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """x(1), and ∫ ∇·ẋ dt (b)."""
        shape = x.shape

        def both(t: float, z: Tensor) -> Tensor:
            at = z[:, :-1].reshape(shape)
            v, trace = with_divergence(lambda y: self.velocity(y, t), at, signs)
            return torch.cat([v.reshape(len(x), -1), trace[:, None]], 1)

        start = torch.cat([x.reshape(len(x), -1), x.new_zeros(len(x), 1)], 1)
        end = odeint(both, start, self.times(self.first, 1.0), self.method, self.rtol, self.atol).last
        return end[:, :-1].reshape(shape), end[:, -1]


def with_divergence(f: Callable[[Tensor], Tensor], x: Tensor, signs: Tensor | None) -> tuple[Tensor, Tensor]:
    """f(x), and ∇·f (b): the exact trace, or vᵀ (∂f/∂x) v."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        v = f(x)
        if not v.requires_grad:
            return v, v.new_zeros(len(x))
        if signs is not None:
            back = torch.autograd.grad(v, x, signs)[0]
            return v.detach(), (back * signs).flatten(1).sum(1)
        flat, trace = v.flatten(1), v.new_zeros(len(x))
        for i in range(flat.shape[1]):
            column = torch.autograd.grad(flat[:, i].sum(), x, retain_graph=True)[0]
            trace = trace + column.flatten(1)[:, i]
        return v.detach(), trace
