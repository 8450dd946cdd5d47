"""Solving dz/dt = f(t, z) from a start, with a fixed or an adapted step, counting what it costs.

    z(T) = z(0) + ∫_0^T f(t, z(t)) dt        (z(0) is missing in DLN's print)

A fixed-step method goes from each time of `t` to the next: 11 times are 10 steps. An adaptive one chooses its steps so
that the estimated error of each stays below the tolerance, and passes through all times:

    E = rms_j( err_j / (atol + rtol max(|z_j|, |z'_j|)) )         accepted where E < 1
    h' = h · clip(0.9 E^(−1/q), 0.2, 10)                          q = 5: order of the pair's lower member, plus 1

The first step and these constants are those of Hairer, Nørsett, Wanner, Solving ODEs I, II.4, as in scipy. Autograd
goes through the accepted steps; how long they are is not differentiated.

Systems: ode-solvers
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor

from descend.errors import Mistake, nearest
from descend.ops.ode.tableaux import METHODS, Tableau, weigh

SAFETY, LEAST, MOST = 0.9, 0.2, 10.0
EVALUATIONS = 100_000  # of f, at most

Slope = Callable[[float, Tensor], Tensor]
"""(t, z) -> dz/dt, of z's shape"""
Norm = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Solution:
    """z at the times asked for (len(t), ..), and what it took."""

    z: Tensor
    evaluations: int
    """Of f: what depth is for a network of layers."""
    points: list[float]
    """Where the steps that counted began and ended."""
    rejected: int = 0
    """Steps that were taken again, shorter."""

    @property
    def last(self) -> Tensor:
        """z at the last time."""
        return self.z[-1]


@dataclass
class Counted:
    """f with a bound on how often it may be evaluated."""

    f: Slope
    most: int
    span: tuple[float, float]
    count: int = field(default=0, init=False)

    def __call__(self, t: float, z: Tensor) -> Tensor:
        if self.count >= self.most:
            begin, end = self.span
            raise Mistake(
                f"the ODE from t = {begin:g} to {end:g} has not ended after {self.most:,} evaluations, at t = {t:.6g}: "
                f"it is stiff there, or the tolerance too strict; raise rtol and atol, or take a fixed-step method"
            )
        self.count += 1
        return self.f(t, z)


def rms(x: Tensor) -> Tensor:
    """√(mean of squares)"""
    return x.square().mean().sqrt()


def odeint(
    f: Slope,
    z0: Tensor,
    t: Sequence[float],
    method: str = "dopri5",
    rtol: float = 1e-6,
    atol: float = 1e-9,
    most: int = EVALUATIONS,
    norm: Norm = rms,
) -> Solution:
    """z at the times t, which rise or fall; z(t[0]) = z0.

    Args:
        f: (t, z) -> dz/dt.
        z0: the start, of any shape.
        t: at least one time.
        method: euler, midpoint, heun and rk4 step from time to time; rkf45 and dopri5 adapt their steps.
        rtol: error of a step that is accepted, relative to z; adaptive methods only.
        atol: the same, absolute.
        most: evaluations of f after which an ODE is given up.
        norm: of the scaled error of a step.
    """
    times = [float(time) for time in t]
    tableau = find_method(method)
    check_times(times)
    counted = Counted(f, most, (times[0], times[-1]))
    stepper = Adaptive(counted, tableau, rtol, atol, norm) if tableau.adaptive else Fixed(counted, tableau)
    kept, points = [z0], times[:1]
    for begin, end in pairwise(times):
        z, passed = stepper.advance(kept[-1], begin, end)
        kept.append(z)
        points += passed
    return Solution(torch.stack(kept), counted.count, points, stepper.rejected)


def find_method(name: str) -> Tableau:
    if name not in METHODS:
        raise Mistake(f"method {name!r} is unknown.{nearest(name, METHODS)} Known: {', '.join(METHODS)}")
    return METHODS[name]


def check_times(times: list[float]) -> None:
    """Times are finite, and either rise or fall."""
    signs = {math.copysign(1.0, b - a) if b != a else 0.0 for a, b in pairwise(times)}
    if not times or not all(map(math.isfinite, times)) or len(signs) > 1 or 0.0 in signs:
        raise Mistake(f"times of an ODE must all rise or all fall, not {', '.join(f'{time:g}' for time in times[:6])}")


class Fixed:
    """One step from each time to the next."""

    def __init__(self, f: Slope, tableau: Tableau):
        self.f, self.tableau, self.rejected = f, tableau, 0

    def advance(self, z: Tensor, begin: float, end: float) -> tuple[Tensor, list[float]]:
        slopes = take_slopes(self.f, self.tableau, begin, z, end - begin, self.f(begin, z))
        return z + (end - begin) * weigh(self.tableau.b, slopes), [end]


class Adaptive:
    """As many steps as the tolerance asks for."""

    def __init__(self, f: Slope, tableau: Tableau, rtol: float, atol: float, norm: Norm):
        self.f, self.tableau, self.norm = f, tableau, norm
        self.rtol, self.atol, self.rejected = rtol, atol, 0
        self.q = min(tableau.order, tableau.paired) + 1
        self.h = 0.0
        self.slope: Tensor | None = None

    def advance(self, z: Tensor, begin: float, end: float) -> tuple[Tensor, list[float]]:
        t, ahead, points = begin, math.copysign(1.0, end - begin), []
        while (end - t) * ahead > 0:
            slope = self.f(t, z) if self.slope is None else self.slope
            self.h = self.h or self.first_step(t, z, slope, ahead, abs(end - begin))
            t, z, self.slope = self.step(t, z, slope, end, ahead)
            points.append(t)
        return z, points

    def step(self, t: float, z: Tensor, slope: Tensor, end: float, ahead: float) -> tuple[float, Tensor, Tensor | None]:
        """One accepted step, shortened until its error is below the tolerance; it does not pass the end.

        The slope at its end comes with it where the method has evaluated it.
        """
        grow = MOST
        while True:
            shortest = 10 * abs(math.nextafter(t, ahead * math.inf) - t)
            self.h = max(self.h, shortest)
            t_next = t + ahead * self.h
            t_next = end if (t_next - end) * ahead >= 0 else t_next
            h = t_next - t
            slopes = take_slopes(self.f, self.tableau, t, z, h, slope)
            z_next = z + h * weigh(self.tableau.b, slopes)
            error = self.error(z, z_next, h * weigh(self.tableau.e, slopes))
            if not math.isfinite(error) and abs(h) <= shortest:
                raise Mistake(f"the ODE's slope is not finite at t = {t:.6g}; its solution ends before t = {end:g}")
            factor = LEAST if not math.isfinite(error) else SAFETY * error ** (-1 / self.q) if error else MOST
            if error < 1:
                self.h = abs(h) * min(grow, factor)
                return t_next, z_next, slopes[-1] if self.tableau.first_same_as_last else None
            self.rejected, grow = self.rejected + 1, 1.0
            self.h = abs(h) * max(LEAST, factor)

    @torch.no_grad()
    def error(self, z: Tensor, z_next: Tensor, error: Tensor) -> float:
        """E, of an estimated error."""
        return float(self.norm(error / (self.atol + self.rtol * torch.maximum(z.abs(), z_next.abs()))))

    @torch.no_grad()
    def first_step(self, t: float, z: Tensor, slope: Tensor, ahead: float, longest: float) -> float:
        """A length for which a Taylor polynomial of the first step is about right; one more evaluation."""
        scale = self.atol + self.rtol * z.abs()
        size, speed = float(self.norm(z / scale)), float(self.norm(slope / scale))
        h0 = min(1e-6 if size < 1e-5 or speed < 1e-5 else 0.01 * size / speed, longest)
        bend = float(self.norm((self.f(t + ahead * h0, z + ahead * h0 * slope) - slope) / scale)) / h0
        if not math.isfinite(speed) or not math.isfinite(bend):
            raise Mistake(f"the ODE's slope is not finite at its start, t = {t:.6g}; check its input")
        steepest = max(speed, bend)
        h1 = max(1e-6, h0 * 1e-3) if steepest <= 1e-15 else (0.01 / steepest) ** (1 / self.q)
        return min(100 * h0, h1, longest)


def take_slopes(f: Slope, tableau: Tableau, t: float, z: Tensor, h: float, first: Tensor) -> list[Tensor]:
    """k_1 .. k_s of one step, of which the first is known."""
    slopes = [first]
    for c, a in zip(tableau.c[1:], tableau.a[1:], strict=True):
        slopes.append(f(t + float(c) * h, z + h * weigh(a, slopes)))
    return slopes
