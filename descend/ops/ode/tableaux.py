"""Runge-Kutta methods as tables: how the slopes of a step are weighed.

    k_i = f(t + c_i h, z + h Σ_{j<i} a_ij k_j)        z(t + h) ≈ z + h Σ_i b_i k_i
    error of the step ≈ h Σ_i e_i k_i                 e = b − b̂, b̂ of a second method of another order

    euler            order 1: z + h f(z)
    midpoint, heun   order 2
    rk4              order 4, the classical one
    rkf45            Runge-Kutta-Fehlberg 4(5): goes on with order 4, its error by order 5
    dopri5           Dormand-Prince 5(4): goes on with order 5; its last slope is the first of the next step

DLN names the two adaptive pairs and prints neither; these are the published tables.

Systems: ode-solvers
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction as F

from torch import Tensor


@dataclass(frozen=True)
class Tableau:
    """The numbers of a method, exact."""

    order: int
    c: tuple[F, ...]
    a: tuple[tuple[F, ...], ...]
    """Row i has i entries."""
    b: tuple[F, ...]
    e: tuple[F, ...] = ()
    """Weights of the error; none for a method of fixed steps."""
    paired: int = 0
    """Order of the second method, which the error is estimated by."""

    @property
    def adaptive(self) -> bool:
        return bool(self.e)

    @property
    def first_same_as_last(self) -> bool:
        """Whether the last slope is f at the end of the step, which the next step begins with."""
        return self.c[-1] == 1 and self.a[-1] == self.b[:-1] and self.b[-1] == 0


def row(*numbers: str | int) -> tuple[F, ...]:
    return tuple(F(number) for number in numbers)


EULER = Tableau(1, row(0), (row(),), row(1))
MIDPOINT = Tableau(2, row(0, "1/2"), (row(), row("1/2")), row(0, 1))
HEUN = Tableau(2, row(0, 1), (row(), row(1)), row("1/2", "1/2"))
RK4 = Tableau(
    4, row(0, "1/2", "1/2", 1), (row(), row("1/2"), row(0, "1/2"), row(0, 0, 1)), row("1/6", "1/3", "1/3", "1/6")
)
RKF45 = Tableau(
    4,
    row(0, "1/4", "3/8", "12/13", 1, "1/2"),
    (
        row(),
        row("1/4"),
        row("3/32", "9/32"),
        row("1932/2197", "-7200/2197", "7296/2197"),
        row("439/216", -8, "3680/513", "-845/4104"),
        row("-8/27", 2, "-3544/2565", "1859/4104", "-11/40"),
    ),
    row("25/216", 0, "1408/2565", "2197/4104", "-1/5", 0),
    row("-1/360", 0, "128/4275", "2197/75240", "-1/50", "-2/55"),
    paired=5,
)
DOPRI5 = Tableau(
    5,
    row(0, "1/5", "3/10", "4/5", "8/9", 1, 1),
    (
        row(),
        row("1/5"),
        row("3/40", "9/40"),
        row("44/45", "-56/15", "32/9"),
        row("19372/6561", "-25360/2187", "64448/6561", "-212/729"),
        row("9017/3168", "-355/33", "46732/5247", "49/176", "-5103/18656"),
        row("35/384", 0, "500/1113", "125/192", "-2187/6784", "11/84"),
    ),
    row("35/384", 0, "500/1113", "125/192", "-2187/6784", "11/84", 0),
    row("71/57600", 0, "-71/16695", "71/1920", "-17253/339200", "22/525", "-1/40"),
    paired=4,
)
METHODS = {"euler": EULER, "midpoint": MIDPOINT, "heun": HEUN, "rk4": RK4, "rkf45": RKF45, "dopri5": DOPRI5}


def weigh(weights: tuple[F, ...], slopes: list[Tensor]) -> Tensor:
    """Σ_i w_i k_i, without the terms that are 0."""
    first, *others = [float(w) * slope for w, slope in zip(weights, slopes, strict=False) if w]
    return sum(others, first)
