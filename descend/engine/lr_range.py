"""The learning-rate finder: one pass with a rate that grows exponentially, and where in it the loss fell fastest.

    η_t = η_min (η_max / η_min)^{t/T},   t = 0 … T        record the loss L_t of every batch, then restore everything

The book (MF 13.1.1) chooses by eye: where the loss still falls steeply, before it diverges. The rule here:

    L̃          the loss, smoothed over neighbouring rates with a symmetric window (a running mean would lag behind)
    steepest    the rate of the most negative dL̃ / d log η before the turn
    turn        the rate at which L̃ is lowest: from there on it no longer falls, divergence begins
    suggestion  min(steepest, turn / 10): the steepest descent, and an order below the divergence

On a quadratic of curvature Λ the turn is near 2/Λ, the largest stable rate of gradient descent.

Systems: learning-rate-finder
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from descend.engine.faults import NotFinite
from descend.engine.training import Training
from descend.errors import Mistake

WINDOW = 0.05  # deviation of the smoothing window, as a share of the sweep
WORSE = 4.0  # the sweep ends when the loss rises above the lowest one by so many times what it had fallen


def rate(t: float, total: float, low: float, high: float) -> float:
    """η_min (η_max / η_min)^{t/T}."""
    return low * (high / low) ** (t / total)


@dataclass(frozen=True)
class Curve:
    """Rates, the loss at each, the smoothed loss, and what follows from them; None where the curve does not say."""

    rates: list[float]
    losses: list[float]
    smoothed: list[float]
    steepest: float | None
    turn: float | None
    ended: str
    """Why the sweep ended: range, diverged, or not finite."""

    @property
    def suggestion(self) -> float | None:
        """The smaller of the steepest point and a tenth of the turn."""
        if self.steepest is None:
            return None
        return self.steepest if self.turn is None else min(self.steepest, self.turn / 10)


def sweep(training: Training, low: float = 1e-6, high: float = 10.0, points: int = 100) -> Curve:
    """Train `points` batches with growing rates and return the curve. Afterwards the training stands where it stood:
    weights, optimizer, average, data position and step."""
    check(training, low, high, points)
    rates, losses, ended = [], [], "range"
    with preserve(training):
        base = next(iter(training.base_lr.values()))[0]
        # Groups with rates of their own keep their ratio to the first.
        training.schedule = lambda step, steps: rate(step, points - 1, low, high) / base
        training.step = 0
        for t in range(points):
            try:
                loss = training.advance()["loss"]
            except NotFinite:
                ended = "not finite"
                break
            rates.append(rate(t, points - 1, low, high))
            losses.append(loss)
            if has_diverged(losses):
                ended = "diverged"
                break
    return curve(rates, losses, points, ended)


def check(training: Training, low: float, high: float, points: int) -> None:
    """Refuse what a sweep cannot do."""
    if not 0 < low < high < math.inf:
        raise Mistake(f"the rates go from {low:g} to {high:g}: give --low above 0 and --high above --low")
    if points < 10:
        raise Mistake(f"--points {points}: at least 10")
    if len(training.optims) > 1:
        players = ", ".join(training.optims)
        raise Mistake(f"a learning-rate sweep needs one loss that falls; here {players} play against each other")
    if any(isinstance(opt, torch.optim.LBFGS) for opt in training.optims.values()):
        raise Mistake("L-BFGS finds the length of every step by a line search; there is no learning rate to find")


@contextmanager
def preserve(training: Training) -> Iterator[None]:
    """Inside, the training may be changed at will; after it, everything is as before."""
    state, schedule = copy.deepcopy(training.state_dict()), training.schedule
    random = torch.get_rng_state()
    try:
        yield
    finally:
        training.schedule = schedule
        training.load_state_dict(state)
        for opt in training.optims.values():
            opt.zero_grad(set_to_none=True)
        torch.set_rng_state(random)


def has_diverged(losses: list[float]) -> bool:
    """Whether the loss is far above where it began and where it was lowest."""
    first, lowest, last = losses[0], min(losses), losses[-1]
    return last > first + WORSE * max(first - lowest, 0.1 * abs(first))


def curve(rates: list[float], losses: list[float], points: int, ended: str) -> Curve:
    """Smooth the losses and read the two points from them."""
    if len(losses) < 3:
        return Curve(rates, losses, losses, None, None, ended)
    smoothed = smooth(losses, WINDOW * points)
    lowest = min(range(len(smoothed)), key=smoothed.__getitem__)
    turn = rates[lowest] if lowest < len(smoothed) - 1 else None
    slopes = [smoothed[i + 1] - smoothed[i - 1] for i in range(1, lowest)]  # steps of log η are equal
    if not slopes or min(slopes) >= 0:
        return Curve(rates, losses, smoothed, None, turn, ended)
    return Curve(rates, losses, smoothed, rates[1 + slopes.index(min(slopes))], turn, ended)


def smooth(values: list[float], width: float) -> list[float]:
    """Each value as the mean of its neighbours with Gaussian weights; the window stays symmetric near the ends."""
    x = torch.tensor(values, dtype=torch.float64)
    n = len(x)
    at = torch.arange(n, dtype=torch.float64)
    apart = (at[:, None] - at[None, :]).abs()
    reach = torch.minimum(at, n - 1 - at)[:, None]
    weights = torch.exp(-0.5 * (apart / width) ** 2) * (apart <= reach)
    return ((weights @ x) / weights.sum(1)).tolist()
