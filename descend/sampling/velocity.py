"""Sampling along a velocity field: dx/dt = v(x, t) from noise at t = 0 to data at t = 1, over any callable.

With a number of steps, Euler's method takes them unless another one is asked for; without, the solver of the model
decides. Used by continuous flows and by flow matching, on points and on images.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Wish
from descend.errors import Mistake
from descend.ops.ode.solve import Solution, find_method
from descend.ops.ode.solver import Solver

OFFERS = frozenset({"steps", "method"})

Field = Callable[[Tensor, float], Tensor]
"""(x, t) -> dx/dt, t the same for all"""


def transport(velocity: Field, x: Tensor, solver: Solver, begin: float = 0.0, end: float = 1.0) -> Solution:
    """x from `begin` to `end`, with evaluations and step points."""
    return solver.solve(lambda t, x: velocity(x, t), x, begin, end)


@torch.no_grad()
def follow_wish(velocity: Field, noise: Tensor, solver: Solver, wish: Wish) -> Tensor:
    """Noise at t = 0 to examples at t = 1, by the solver that is wished for or else by the model's own."""
    return transport(velocity, noise, choose_solver(solver, wish)).last


def choose_solver(solver: Solver, wish: Wish) -> Solver:
    """The model's solver, with the method and steps that are wished for."""
    fixed = "euler" if find_method(solver.method).adaptive else solver.method
    method: Any = wish.method or (fixed if wish.steps else solver.method)
    if find_method(method).adaptive and wish.steps:
        raise Mistake(f"--steps {wish.steps}: {method} chooses its own steps; leave one of the two flags out")
    return replace(solver, method=method, steps=wish.steps or solver.steps, gradient="autograd")
