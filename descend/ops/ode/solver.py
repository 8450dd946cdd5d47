"""A solver as a value: method, steps or tolerances, and how gradients come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from descend.ops.ode.adjoint import odeint_adjoint
from descend.ops.ode.solve import Slope, Solution, find_method, odeint

Method = Literal["euler", "midpoint", "heun", "rk4", "rkf45", "dopri5"]
Gradient = Literal["autograd", "adjoint"]


@dataclass(frozen=True)
class Solver:
    """How an ODE is solved."""

    method: Method = "dopri5"
    steps: int = 10
    """Of a method with fixed steps; the adaptive ones choose."""
    rtol: float = 1e-5
    atol: float = 1e-5
    most: int = 10_000
    """Evaluations after which an ODE is given up."""
    gradient: Gradient = "autograd"
    """Through the solver's steps, or by the adjoint method, which keeps none of them."""

    def times(self, begin: float, end: float) -> list[float]:
        """The times that are passed: all steps of a fixed method, both ends of an adaptive one."""
        if find_method(self.method).adaptive:
            return [begin, end]
        return [begin + (end - begin) * n / self.steps for n in range(self.steps)] + [end]

    def solve(self, f: Slope, z: Tensor, begin: float, end: float, parameters: Sequence[Tensor] = ()) -> Solution:
        """z from `begin` to `end`; `parameters` are those that f uses, which the adjoint method must know."""
        times = self.times(begin, end)
        if self.gradient == "adjoint" and torch.is_grad_enabled():
            return odeint_adjoint(f, z, times, parameters, self.method, self.rtol, self.atol, self.most)
        return odeint(f, z, times, self.method, self.rtol, self.atol, self.most)
