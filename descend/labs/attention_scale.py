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

from descend.labs._evidence import AtMost, Below
from descend.ops.attention.dot_product import attention, unscaled_attention

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENTRIES = ("MF-B.27", "S940-DLD.70", "VOM-A.85")
PRINTED = (
    "Var[q·k] = d_k, so unscaled scores saturate the softmax and its gradient; typical ranges at"
    " d_k = 512 are ±30, and ±3 scaled (erratum: ±67.9 belongs to ±3)."
)
CLAIM = (
    "With entries of mean 0 and variance 1, q·k has variance d_k. Unless it is divided by √d_k, the softmax"
    " saturates as d_k grows: a query's weights become one-hot and the gradient of the typical query vanishes."
)
PREDICTIONS = (
    AtMost(
        "variance",
        4,
        "The largest distance of a measured variance from d_k, in its standard errors.",
    ),
    Below(
        "entropy of one-hot",
        0.1,
        "Entropy at the largest d_k as a share of that of equal weights; near 1 would mean no saturation.",
    ),
    Below(
        "gradient left",
        0.05,
        "The unscaled median gradient at the largest d_k as a share of the scaled one.",
    ),
    AtMost(
        "drift when scaled",
        0.1,
        "The largest relative distance of the scaled entropy and gradient from their means over d_k.",
    ),
)
CONTROLS = (
    AtMost(
        "error of variance",
        0.1,
        "The standard error of a variance as a share of d_k: above it too few queries were drawn.",
    ),
)
PRINTED_PREDICTIONS = (
    AtMost(
        "share beyond 30 at 512",
        0.0027,
        "If ±30 is as typical before scaling as ±3 is after it, 0.27% of the scores lie beyond.",
    ),
)
SCOPE = "Independent entries, 64 keys, d_k from 4 to 1024; trained queries and keys are not independent."
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


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    sizes, errors = numbers["d_k"], numbers["errors"]["variance"]
    off = [abs(v - d) / e for v, d, e in zip(numbers["variance"], sizes, errors, strict=True)]
    return {
        "variance": max(off),
        "entropy of one-hot": numbers["entropy"][-1] / numbers["entropy_of_equal_weights"],
        "gradient left": numbers["gradient"][-1] / numbers["scaled_gradient"][-1],
        "drift when scaled": max(drift(numbers[name]) for name in ("scaled_entropy", "scaled_gradient")),
        "error of variance": max(e / d for e, d in zip(errors, sizes, strict=True)),
        "share beyond 30 at 512": numbers["share_over_30_at_512"],
    }


def drift(values: list[float]) -> float:
    """The largest distance of a value from their mean, as a share of it."""
    mean = sum(values) / len(values)
    return max(abs(value - mean) for value in values) / mean


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
