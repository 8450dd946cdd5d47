"""What training costs, what more of it brings, and what it will cost later.

    run             GPUs · days · 24 · price of an hour            share = GPUs / those made in a year
    memory          N · bytes; GPUs = ⌈N · bytes / memory of one⌉
    efficiency      achieved / peak FLOP/s            energy = GPUs · watts · hours
    for a loss      C' / C = ρ^(−1/α) for the loss ratio ρ: half the loss takes 2^20 = 1.05e6 times the compute
    lifetime        6 N D · price + queries · 2 N · tokens of a query · price: a smaller model trained longer
                    costs more to train and less to ask
    forecast        years = log(C' / C) / log(growth a year)          price of a FLOP: (1 − 0.30)^years

VOM 14.6.2: 25,000 A100 for 90 days at 2 dollars an hour are 108 million dollars, 5% of 500,000 GPUs made in a year.
A hundred times the compute is not a hundred times better: the loss falls to 100^−0.05 = 79%.

Systems: scaling-economics
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.optimize import brentq, minimize_scalar

from descend.errors import Mistake
from descend.theory.compute_optimal import training_flops

INFERENCE = 2.0
"""FLOPs of a parameter and a token when a model answers."""
DECLINE = 0.30
"""Of the price of compute in a year: VOM 14.7.3."""


def run_cost(gpus: float, days: float, price: float) -> float:
    """Of a training run at a price for a GPU-hour."""
    return gpus * days * 24 * price


def weight_bytes(parameters: float, each: float = 2) -> float:
    """Memory of the weights alone."""
    return parameters * each


def gpus_needed(parameters: float, each: float = 2, memory: float = 80e9) -> int:
    """How many GPUs hold the weights."""
    return math.ceil(weight_bytes(parameters, each) / memory)


def efficiency(flops: float, seconds: float, peak: float) -> float:
    """Achieved over peak FLOP/s."""
    if not (seconds > 0 and peak > 0):
        raise Mistake(f"{seconds:g} s at a peak of {peak:g} FLOP/s: both must be above 0")
    return flops / seconds / peak


def energy(gpus: float, watts: float, hours: float) -> float:
    """Kilowatt-hours."""
    return gpus * watts * hours / 1000


def factor_for_ratio(ratio: float, alpha: float = 0.05) -> float:
    """ρ^(−1/α): how many times the compute leaves this share of the loss."""
    if not ratio > 0:
        raise Mistake(f"a loss ratio of {ratio:g}: it must be above 0")
    return float(ratio ** (-1 / alpha))


def years_until(now: float, target: float, growth: float) -> float:
    """Until a level of compute is reached that grows by this factor a year; 0 if it is there."""
    if not growth > 1:
        raise Mistake(f"a growth of {growth:g} a year never gets there; it must be above 1")
    return max(0.0, math.log(target / now) / math.log(growth))


def price_after(price: float, years: float, decline: float = DECLINE) -> float:
    """Of the same FLOPs, when they get cheaper by this share every year."""
    return float(price * (1 - decline) ** years)


@dataclass(frozen=True)
class Lifetime:
    """What a model of a given quality is asked: the law that says which models have it, and the use it will see."""

    law: Callable[[float, float], float]
    loss: float
    queries: float
    length: float = 1000.0
    """Tokens of a query."""

    def tokens(self, parameters: float) -> float:
        """What a model of this size must read to reach the loss; infinite for one that is too small."""
        short = lambda log: self.law(parameters, math.exp(log)) - self.loss
        if short(120.0) > 0:
            return math.inf
        return math.exp(brentq(short, 0.0, 120.0, xtol=1e-12))

    def flops(self, parameters: float) -> float:
        """Training and all answers."""
        return training_flops(parameters, self.tokens(parameters)) + self.serving(parameters)

    def serving(self, parameters: float) -> float:
        """All answers: in proportion to the size."""
        return INFERENCE * parameters * self.queries * self.length

    def best_size(self) -> float:
        """The size that costs least over its life; without queries, the compute-optimal one."""
        low = brentq(lambda log: self.law(math.exp(log), 1e50) - self.loss, 0.0, 90.0)
        best = minimize_scalar(
            lambda log: math.log(self.flops(math.exp(log))),
            bounds=(low + 1e-6, low + 20),
            method="bounded",
            options={"xatol": 1e-10},
        )
        return math.exp(best.x)


def share_of_production(gpus: float, made: float) -> float:
    """Of the GPUs made in a year."""
    return gpus / made


def inference_ratio(parameters: float, others: float) -> float:
    """How many times the cost of a query: in proportion to the size."""
    return parameters / others
