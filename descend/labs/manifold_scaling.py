"""Scaling on a manifold: what N linear pieces can do for data of d dimensions.

    data       u uniform on [−1, 1]^d, bent into 16 dimensions: x = sin(A u) + B u; a smooth teacher
    student    N cells (k-means), a linear function in each: piecewise linear, as a ReLU network is
    error      ~ N^(−4/d): a cell has the diameter N^(−1/d), a linear fit leaves its square, and the error is squared

VOM 14.4.3.1 says that the exponent depends on d and on smoothness, without a formula; 4/d is the literature's.

Systems: scaling-explanations
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from descend.labs._evidence import AtLeast, NeedsMore, Within
from descend.labs._log_lines import Curve, Panel, draw_panels
from descend.theory.scaling_fit import fit_power_law

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.119",)
PRINTED = "On a d-dimensional manifold the error falls about as N^-alpha, with alpha depending on d."
CLAIM = "The more dimensions the data really vary in, the slower the error falls with size: the exponent is about c/d."
PREDICTIONS = (
    AtLeast("exponent at d = 1 over d = 4", 2.5, "c/d gives 4; a ratio of 1, no dependence on d, would refute it"),
    Within("exponent times d, at d = 2", 2.8, 5.2, "4/d is expected of linear pieces; far from 4 refutes the reason"),
    AtLeast("order", 1.0, "the exponents fall from d = 1 to 2, 4 and 8 without exception"),
)
SCOPE = "planted manifolds of 1, 2, 4 and 8 dimensions in 16, a smooth teacher, 8 to 128 pieces, endless data in effect"
BUDGET = 8.0
PRICE = 1500  # points for each teacher that a second buys
DIMENSIONS, CELLS, OBSERVED = (1, 2, 4, 8), (8, 16, 32, 64, 128), 16
TEACHERS, LEAST = 3, 6000

Array = NDArray[np.float64]


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Test error by dimension and number of pieces."""
    count = round(PRICE * budget)
    if count < LEAST:
        raise NeedsMore(LEAST / PRICE)
    columns: dict[str, Any] = {"pieces": list(CELLS)}
    alphas = []
    for d in DIMENSIONS:
        random = np.random.default_rng([seed, d])
        drawn = [draw(count, d, random) for _ in range(TEACHERS)]
        errors = [float(np.mean([fit_pieces(data, d, cells, random) for data in drawn])) for cells in CELLS]
        columns[f"error d={d}"] = errors
        alphas.append(fit_power_law(CELLS, errors).law.alpha)
    return {**columns, "d": list(DIMENSIONS), "exponent": alphas, "points": count}


def draw(count: int, d: int, random: np.random.Generator) -> tuple[Array, Array]:
    """Points in 16 dimensions and the teacher's answers, of variance 1."""
    u = 2 * random.random((count, d)) - 1
    bend, flat = random.standard_normal((2, d, OBSERVED)) / np.sqrt(d)
    x = 0.3 * np.sin(u @ bend) + u @ flat
    waves = random.standard_normal((d, 6)) * 2 / np.sqrt(d)
    y = np.sin(u @ waves + 6 * random.random(6)).sum(1)
    return x, (y - y.mean()) / y.std()


def fit_pieces(data: tuple[Array, Array], d: int, cells: int, random: np.random.Generator) -> float:
    """Mean squared error on the second half of a function that is linear in each cell, along d directions."""
    from sklearn.cluster import KMeans

    (x, x_new), (y, y_new) = (np.array_split(values, 2) for values in data)
    cut = KMeans(cells, n_init=1, max_iter=30, random_state=int(random.integers(2**31))).fit(x[:4000])
    own, new = cut.predict(x), cut.predict(x_new)
    total = 0.0
    for cell in range(cells):
        here, there = own == cell, new == cell
        if not here.any() or not there.any():
            continue
        middle = x[here].mean(0)
        plane = np.linalg.svd(x[here] - middle, full_matrices=False)[2][:d].T
        design = np.concatenate([np.ones((here.sum(), 1)), (x[here] - middle) @ plane], 1)
        w = np.linalg.lstsq(design, y[here], rcond=None)[0]
        guess = np.concatenate([np.ones((there.sum(), 1)), (x_new[there] - middle) @ plane], 1) @ w
        total += float(((guess - y_new[there]) ** 2).sum())
    return total / len(y_new)


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    a = dict(zip(numbers["d"], numbers["exponent"], strict=True))
    return {
        "exponent at d = 1 over d = 4": a[1] / a[4],
        "exponent times d, at d = 2": 2 * a[2],
        "order": float(a[1] > a[2] > a[4] > a[8]),
    }


def needs(numbers: dict[str, Any]) -> float:
    return 0.0 if numbers["points"] >= LEAST else LEAST / PRICE


def figure(numbers: dict[str, Any]) -> Figure:
    """The errors, and the exponents over the dimension beside 4/d."""
    curves = [Curve(f"d = {d}", numbers["pieces"], numbers[f"error d={d}"]) for d in numbers["d"]]
    over = [
        Curve("measured", numbers["d"], numbers["exponent"]),
        Curve("4/d", numbers["d"], [4 / d for d in numbers["d"]]),
    ]
    return draw_panels(
        [Panel("test error", "pieces", "squared error", curves), Panel("exponent", "dimension", "alpha", over)]
    )
