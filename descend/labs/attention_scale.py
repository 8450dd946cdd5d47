"""Why attention divides by √d_k: unscaled scores grow with d_k and saturate the softmax.

    q, k with independent entries of mean 0 and variance 1:   Var[q·k] = d_k,   Var[q·k / √d_k] = 1
    a = softmax(s),   ∂a/∂s = diag(a) - a aᵀ,   ‖∂a/∂s‖² = Σ a² - 2 Σ a³ + (Σ a²)²

Measured for queries that each look at 64 keys of their own: the variance of the scores, the entropy of the weights, and
the norm of the softmax's derivative. What vanishes is the gradient of most queries, so the median is reported; the mean
falls only as 1/√d_k, because a few queries stand between two equal keys and keep a large gradient.

Erratum: MF 18.7.3 prints the typical ranges ±30 and ±3 for d_k = 512. They do not belong together: ±30 becomes ±1.33
when scaled, and ±3 was ±67.9. The share of |q·k| above 30 is 18%, which the lab also measures.

Systems: attention-scaling-analysis
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.ops.attention.dot_product import attention, unscaled_attention

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLAIM = (
    "With entries of mean 0 and variance 1, q·k has variance d_k. Unless it is divided by √d_k, the softmax"
    " saturates as d_k grows: a query's weights become one-hot and the gradient of the typical query vanishes."
)
SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
KEYS = 64
BUDGET = 2.0
PRICE = 1500  # queries of all sizes that a second of one core buys
CHUNK = 100  # queries at a time, to stay below 30 MB


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Variance, entropy and gradient against d_k, with and without the scale."""
    queries = CHUNK * max(1, round(PRICE * budget / CHUNK))
    random = torch.Generator().manual_seed(seed)
    columns: dict[str, list[float]] = {"d_k": list(SIZES)}
    errors: list[float] = []
    over_30 = 0.0
    for d_k in SIZES:
        found = [look(CHUNK, d_k, random) for _ in range(queries // CHUNK)]
        seen = {name: torch.cat([part[name] for part in found]) for name in found[0]}
        # A query's 64 scores share q, so the query, not the score, is the independent observation.
        squares = seen["scores"].square().mean(-1)
        errors.append(float(squares.std() / math.sqrt(queries)))
        row = {
            "variance": seen["scores"].var(),
            "scaled_variance": seen["scores"].var() / d_k,
            "entropy": seen["entropy"].mean(),
            "scaled_entropy": seen["scaled_entropy"].mean(),
            "gradient": seen["gradient"].median(),
            "scaled_gradient": seen["scaled_gradient"].median(),
            "mean_gradient": seen["gradient"].mean(),
        }
        for name, value in row.items():
            columns.setdefault(name, []).append(float(value))
        if d_k == 512:
            over_30 = float((seen["scores"].abs() > 30).double().mean())
    facts = {
        "queries": queries,
        "keys": KEYS,
        "entropy_of_equal_weights": math.log(KEYS),
        "share_over_30_at_512": over_30,
    }
    return {**columns, **facts, "errors": {"variance": errors}}


def look(n: int, d_k: int, random: torch.Generator) -> dict[str, Tensor]:
    """Scores (n, keys), entropies (n) and gradient norms (n) of n queries with keys of their own."""
    q, k = (torch.randn(n, m, d_k, generator=random) for m in (1, KEYS))
    v = torch.zeros(n, KEYS, 1)
    found = {"scores": (q @ k.transpose(-2, -1)).squeeze(1).double()}
    for prefix, attend in (("", unscaled_attention), ("scaled_", attention)):
        a = attend(q, k, v)[1].squeeze(1).double()
        found[f"{prefix}entropy"] = torch.special.entr(a).sum(-1)
        found[f"{prefix}gradient"] = gradient_norm(a)
    return found


def gradient_norm(a: Tensor) -> Tensor:
    """‖diag(a) - a aᵀ‖ for each row of weights."""
    second, third = a.square().sum(-1), a.pow(3).sum(-1)
    return (second - 2 * third + second.square()).clamp_min(0).sqrt()


def verdict(numbers: dict[str, Any]) -> str:
    """Open if the variance is known to less than 10%; refuted if any part of the claim fails; else supported.

    The parts: every variance within 4 standard errors of d_k; at the largest d_k the unscaled entropy is below a tenth
    of that of equal weights and the unscaled median gradient below a twentieth of the scaled one; with the scale,
    entropy and gradient stay within 10% of their means for all d_k.
    """
    sizes, errors = numbers["d_k"], numbers["errors"]["variance"]
    if any(error > 0.1 * d_k for error, d_k in zip(errors, sizes, strict=True)):
        return "open"
    exact = all(
        abs(variance - d_k) <= 4 * error
        for variance, d_k, error in zip(numbers["variance"], sizes, errors, strict=True)
    )
    one_hot = numbers["entropy"][-1] < 0.1 * numbers["entropy_of_equal_weights"]
    vanished = numbers["gradient"][-1] < 0.05 * numbers["scaled_gradient"][-1]
    cured = all(steady(numbers[name]) for name in ("scaled_entropy", "scaled_gradient"))
    return "supported" if exact and one_hot and vanished and cured else "refuted"


def steady(values: list[float]) -> bool:
    """Whether all values lie within 10% of their mean."""
    mean = sum(values) / len(values)
    return all(abs(value - mean) <= 0.1 * mean for value in values)


def figure(numbers: dict[str, Any]) -> Figure:
    """Three panels against d_k: variance, entropy, gradient; orange without the scale, blue with it."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(12, 3.9), layout="constrained")
    left, middle, right = fig.subplots(1, 3)
    x = numbers["d_k"]
    left.plot(x, x, color="0.6", lw=5, alpha=0.5, label="d_k, the closed form")
    pair(left, numbers, "variance", "variance of the scores")
    left.set_yscale("log")
    middle.axhline(numbers["entropy_of_equal_weights"], color="0.6", ls=":", label="equal weights")
    pair(middle, numbers, "entropy", f"entropy of {numbers['keys']} weights")
    middle.set_ylim(bottom=0)
    right.plot(x, numbers["mean_gradient"], color="#d66820", lw=1.2, ls="--", label="q·k, mean")
    pair(right, numbers, "gradient", "gradient of the softmax, median")
    right.set_yscale("log")
    for axes in (left, middle, right):
        axes.legend(frameon=False, fontsize=9)
    return fig


def pair(axes: Axes, numbers: dict[str, Any], name: str, title: str) -> None:
    """The unscaled and the scaled curve of one quantity."""
    axes.plot(numbers["d_k"], numbers[name], "o-", color="#d66820", ms=4, label="q·k")
    axes.plot(numbers["d_k"], numbers[f"scaled_{name}"], "o-", color="#2b6cd8", ms=4, label="q·k / √d_k")
    axes.set_xscale("log", base=2)
    axes.set_xticks(numbers["d_k"], [str(d) for d in numbers["d_k"]], fontsize=8)
    axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
    axes.set_xlabel("d_k")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
