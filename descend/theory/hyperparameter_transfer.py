"""From the best values of a small model to those of a large one.

    learning rate  lr ∝ N^−½        batch  ∝ N^½        100 times the parameters: a tenth of the rate, ten batches

VOM 14.7.2 gives the rule; S940 and DLD 11.7 warn that what is best for a small model need not be best for a large one.
Both are tested by the lab `learning-rate-transfer`. `find_optimum` reads the best rate off a sweep: the vertex of the
parabola through the least loss and its neighbours, in log lr.

Systems: hyperparameter-transfer
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from descend.errors import Mistake

LR_EXPONENT = -0.5
BATCH_EXPONENT = 0.5


def transfer(lr: float, batch: float, small: float, large: float) -> tuple[float, float]:
    """(lr, batch) of a model with `large` parameters, from the best ones of a model with `small`."""
    for name, value in (("lr", lr), ("batch", batch), ("small", small), ("large", large)):
        if not value > 0:
            raise Mistake(f"{name} = {value:g}: it must be above 0")
    times = large / small
    return lr * times**LR_EXPONENT, batch * times**BATCH_EXPONENT


def find_optimum(rates: Sequence[float], losses: Sequence[float]) -> float:
    """The rate at the bottom of a sweep. A least loss at the end of the sweep is an error: the bottom lies outside."""
    at = min(range(len(losses)), key=losses.__getitem__)
    if at in (0, len(losses) - 1):
        raise Mistake(f"the best rate, {rates[at]:g}, is the {'first' if at == 0 else 'last'} of the sweep; widen it")
    x = [math.log(rate) for rate in rates[at - 1 : at + 2]]
    y = losses[at - 1 : at + 2]
    left, right = (y[1] - y[0]) / (x[1] - x[0]), (y[2] - y[1]) / (x[2] - x[1])
    bend = (right - left) / (x[2] - x[0])
    return math.exp((x[0] + x[1]) / 2 - left / (2 * bend)) if bend > 0 else rates[at]


def measure_exponent(sizes: Sequence[float], optima: Sequence[float]) -> float:
    """The e of optimum ∝ N^e, by least squares in log-log."""
    u, v = [math.log(n) for n in sizes], [math.log(r) for r in optima]
    mean_u, mean_v = sum(u) / len(u), sum(v) / len(v)
    return sum((a - mean_u) * (b - mean_v) for a, b in zip(u, v, strict=True)) / sum((a - mean_u) ** 2 for a in u)
