"""Fitting a scaling law to measured losses, and saying how far it can be trusted.

    without a floor    log L = b₀ + b₁ log x            α = −b₁,   a = e^b₀                     by least squares
    robust             the same, Huber's loss of the residuals: one bad run does not tilt the line
    with a floor       L = L_∞ + a x^−α                 for a given α linear in (L_∞, a), both ≥ 0; α by search;
                                                        residuals relative, (L̂ − L) / L
    interval           draw σ² = RSS / χ²_ν and losses L̂ (1 + σ ε), fit again, take quantiles. Without a floor these
                       are Student's intervals: ν = n − 2 is small when five runs are all there is
    hold-out           fit without the largest runs, predict them

VOM 14.9.3 asks for 2-3 orders of magnitude, one unit of the held-out loss, one or two points held out, and warns of its
pitfalls (`find_pitfalls`): too short a range, small models not trained to the end, large ones that had seen the test
text. A floor that is there and not fitted makes α too small, and the more so the nearer it comes.

Systems: fitting-scaling-laws
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar, nnls
from scipy.stats import f as fisher

from descend.errors import Mistake
from descend.theory.scaling_laws import AdditiveLaw, PowerLaw, UnifiedLaw

Array = NDArray[np.float64]
DECADES = 2.0
"""Orders of magnitude that the sizes should span: VOM 14.9.3."""
BEYOND = 10.0
"""How far past the largest run a law may be asked: VOM 14.9.5."""
CURVED = 0.05
"""The chance of a bend by noise below which it counts as one."""
HELD_OUT = 0.05
"""Relative error of a held-out run that is called more than a few percent."""


@dataclass(frozen=True)
class ScalingFit:
    """A fitted law, the runs it was fitted to, and its uncertainty."""

    law: PowerLaw
    x: Array
    losses: Array
    covariance: Array
    """Of (log a, α) in log-log, as least squares estimate it."""
    spread: float
    """Standard deviation of the relative residuals."""

    @property
    def free(self) -> int:
        """Degrees of freedom that are left for the noise."""
        return len(self.x) - (3 if self.law.floor else 2)

    @property
    def alpha_error(self) -> float:
        """Standard error of α."""
        return float(math.sqrt(self.covariance[1, 1]))

    @property
    def r_squared(self) -> float:
        """Share of the variance of log L that the law explains."""
        log, found = np.log(self.losses), np.log([self.law(x) for x in self.x])
        total = float(((log - log.mean()) ** 2).sum())
        return 1 - float(((log - found) ** 2).sum()) / total if total else 1.0


Fit = Callable[[Sequence[float], Sequence[float]], ScalingFit]


def read_points(x: Sequence[float], losses: Sequence[float], least: int) -> tuple[Array, Array]:
    """The runs as arrays, in order of size."""
    a, b = np.asarray(x, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    if len(a) != len(b):
        raise Mistake(f"{len(a)} sizes and {len(b)} losses: a law is fitted to pairs")
    if len(np.unique(a)) < least:
        raise Mistake(f"{len(np.unique(a))} sizes: this fit needs at least {least} different ones")
    if not (np.isfinite(a).all() and np.isfinite(b).all() and (a > 0).all() and (b > 0).all()):
        raise Mistake("sizes and losses must be finite and above 0; leave out runs that diverged")
    order = np.argsort(a, kind="stable")
    return a[order], b[order]


def fit_power_law(x: Sequence[float], losses: Sequence[float]) -> ScalingFit:
    """Ordinary least squares in log-log."""
    a, b = read_points(x, losses, 2)
    return fit_line(a, b, np.ones_like(a))


def fit_line(x: Array, losses: Array, weights: Array) -> ScalingFit:
    """Weighted least squares of log L on log x."""
    u, v = np.log(x), np.log(losses)
    design = np.stack([np.ones_like(u), -u], 1)
    gram = np.linalg.inv(design.T @ (weights[:, None] * design))
    log_a, alpha = gram @ design.T @ (weights * v)
    residuals = v - design @ np.array([log_a, alpha])
    spread = math.sqrt(float((weights * residuals**2).sum()) / max(1, len(x) - 2))
    if alpha <= 0:
        raise Mistake(f"the losses do not fall with size (exponent {alpha:.3g}); there is no law to fit")
    return ScalingFit(PowerLaw(math.exp(log_a / alpha), float(alpha)), x, losses, gram * spread**2, spread)


def fit_huber(x: Sequence[float], losses: Sequence[float], delta: float = 0.01) -> ScalingFit:
    """Huber's loss in log-log: residuals beyond `delta` pull with constant force; by reweighted least squares."""
    a, b = read_points(x, losses, 2)
    weights = np.ones_like(a)
    for _ in range(500):
        fit = fit_line(a, b, weights)
        away = np.abs(np.log(b) - np.log([fit.law(value) for value in a]))
        new = np.minimum(1.0, delta / np.maximum(away, 1e-300))
        if np.abs(new - weights).max() < 1e-12:
            break
        weights = new
    return fit


def fit_floor(x: Sequence[float], losses: Sequence[float]) -> ScalingFit:
    """L = L_∞ + a x^−α by relative least squares; a floor below 0 is not allowed."""
    a, b = read_points(x, losses, 4)
    middle = math.exp(float(np.log(a).mean()))

    def split(alpha: float) -> tuple[Array, float]:
        return nnls(np.stack([np.ones_like(a), (a / middle) ** -alpha], 1) / b[:, None], np.ones_like(b))

    rough = min(np.geomspace(0.01, 4.0, 40), key=lambda alpha: split(float(alpha))[1])
    bounds = (math.log(rough) - 0.2, math.log(rough) + 0.2)
    best = minimize_scalar(
        lambda log: split(math.exp(log))[1], bounds=bounds, method="bounded", options={"xatol": 1e-9}
    )
    alpha = math.exp(best.x)
    (floor, size), distance = split(alpha)
    if not size > 0:
        raise Mistake("the losses do not fall with size; there is no law to fit")
    spread = distance / math.sqrt(max(1, len(a) - 3))
    fitted = floor + size * (a / middle) ** -alpha
    share = (fitted - floor) / fitted
    design = np.stack([share, -share * np.log(a / middle), 1 / fitted], 1)
    covariance = np.linalg.pinv(design.T @ design)[:2, :2] * spread**2
    law = PowerLaw(math.exp(math.log(size) / alpha + math.log(middle)), alpha, float(floor))
    return ScalingFit(law, a, b, covariance, spread)


def bootstrap(fit: ScalingFit, refit: Fit, draws: int = 400, seed: int = 0) -> list[PowerLaw]:
    """Laws of as many sweeps that might have been measured instead; a sweep without a law is drawn again."""
    random = np.random.default_rng(seed)
    fitted = np.array([fit.law(x) for x in fit.x])
    found: list[PowerLaw] = []
    for _ in range(5 * draws):
        sigma = fit.spread * math.sqrt(max(1, fit.free) / random.chisquare(max(1, fit.free)))
        try:
            found.append(
                refit(fit.x.tolist(), (fitted * np.exp(sigma * random.standard_normal(len(fitted)))).tolist()).law
            )
        except Mistake:
            continue
        if len(found) == draws:
            return found
    raise Mistake("the runs scatter so much that most sweeps like this one show no law; add sizes or seeds")


def interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """The middle `level` of the values."""
    low, high = np.quantile(np.asarray(values), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def hold_out(x: Sequence[float], losses: Sequence[float], refit: Fit, points: int = 1) -> list[float]:
    """Relative errors of the largest runs as predicted from the others: prediction / measured − 1."""
    a, b = read_points(x, losses, 3)
    fit = refit(a[:-points].tolist(), b[:-points].tolist())
    return [fit.law(float(u)) / float(v) - 1 for u, v in zip(a[-points:], b[-points:], strict=True)]


def measure_bend(x: Sequence[float], losses: Sequence[float]) -> tuple[float, float]:
    """(c₂, chance): the square term of log L = c₀ + c₁ log x + c₂ log² x, above 0 when the curve flattens, and the
    chance that noise alone would bend a line so far (F test)."""
    a, b = read_points(x, losses, 4)
    u, v = np.log(a) - np.log(a).mean(), np.log(b)
    straight, curved = (np.polynomial.polynomial.polyfit(u, v, order) for order in (1, 2))
    rss = [float(((v - np.polynomial.polynomial.polyval(u, c)) ** 2).sum()) for c in (straight, curved)]
    free = len(a) - 3
    if rss[1] <= 1e-24 * float((v**2).sum()):
        return float(curved[2]), 0.0 if rss[0] > 1e-20 * float((v**2).sum()) else 1.0
    return float(curved[2]), float(fisher.sf((rss[0] - rss[1]) / (rss[1] / free), 1, free))


def find_pitfalls(x: Sequence[float], losses: Sequence[float], at: float = 0.0) -> list[str]:
    """What makes a fit to these runs, and its answer at size `at`, doubtful; in words for the user."""
    a, b = read_points(x, losses, 2)
    found = []
    decades = math.log10(a[-1] / a[0])
    if decades < DECADES - 1e-9:
        found.append(f"below two decades: the sizes span {decades:.1f} orders of magnitude, {DECADES:g} are asked for")
    if at > BEYOND * a[-1] * (1 + 1e-9):
        found.append(f"beyond 10x: asked at {at / a[-1]:.3g} times the largest run; further than 10 is speculation")
    rising = [float(v) for u, v in pairwise(b) if v > u]
    if rising:
        found.append(f"not falling: the loss rises again to {rising[0]:.4g}; train longer, or tune the larger runs")
    if len(a) < 4:
        return found
    bend, chance = measure_bend(x, losses)
    if bend > 0 and chance < CURVED:
        found.append(
            "near a floor, or small runs undertrained: the line flattens, and without a floor it promises too much"
        )
    elif bend < 0 and chance < CURVED:
        found.append("steeper with size: have the largest runs seen the test data?")
    try:
        [error] = hold_out(x, losses, fit_power_law)
    except Mistake:
        return found  # without the largest run there is no law
    if abs(error) > HELD_OUT:
        found.append(
            f"hold-out: the largest run is predicted {abs(error):.1%} {'above' if error > 0 else 'below'} its loss"
        )
    return found


def fit_unified(points: Sequence[tuple[float, float, float]], start: UnifiedLaw) -> UnifiedLaw:
    """All four constants of the unified law from (N, D, L), by least squares of log L."""
    from scipy.optimize import least_squares

    n, d, loss = (np.array(column) for column in zip(*points, strict=True))

    def residuals(p: Array) -> Array:
        ratio = math.exp(p[2] - p[3])
        parts = np.logaddexp(ratio * (p[0] - np.log(n)), p[1] - np.log(d))
        return np.asarray(math.exp(p[3]) * parts - np.log(loss))

    begin = np.log([start.n_scale, start.d_scale, start.n_alpha, start.d_alpha])
    found = least_squares(residuals, begin, xtol=1e-14, ftol=1e-14, gtol=1e-14, max_nfev=5000, x_scale="jac")
    return UnifiedLaw(*(float(v) for v in np.exp(found.x)))


def fit_additive(points: Sequence[tuple[float, float, float]]) -> AdditiveLaw:
    """E, A, α, B, β of the additive law from (N, D, L): for given exponents a non-negative linear problem."""
    from scipy.optimize import minimize

    n, d, loss = (np.array(column) for column in zip(*points, strict=True))
    mid = [math.exp(float(np.log(v).mean())) for v in (n, d)]

    def split(p: Array) -> tuple[Array, float]:
        design = np.stack([np.ones_like(n), (n / mid[0]) ** -math.exp(p[0]), (d / mid[1]) ** -math.exp(p[1])], 1)
        return nnls(design / loss[:, None], np.ones_like(loss))

    grid = [(split(np.log([a, b]))[1], a, b) for a in (0.1, 0.2, 0.4, 0.8) for b in (0.1, 0.2, 0.4, 0.8)]
    _, *begin = min(grid)
    options = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 4000}
    found = minimize(lambda p: split(p)[1], np.log(begin), method="Nelder-Mead", options=options).x
    alpha, beta = (float(v) for v in np.exp(found))
    floor, a, b = (float(v) for v in split(found)[0])
    return AdditiveLaw(floor, a * mid[0] ** alpha, alpha, b * mid[1] ** beta, beta)
