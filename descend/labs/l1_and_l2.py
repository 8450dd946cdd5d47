"""When to penalise how: L1 for few true weights, L2 for many, L2 or both for features that move together.

    ridge  ½‖Xw − y‖² + λ/2 ‖w‖²        lasso  ½‖Xw − y‖² + λ‖w‖₁        elastic net  half of each
    excess error of ŵ on new data   E = (ŵ − w)ᵀ Σ (ŵ − w) = bias² + variance over training sets,   Σ = Cov[x]

Three truths w over 24 features, fitted again and again to 30 fresh examples: `sparse`, 4 weights are not 0; `dense`,
all are drawn from N(0, 0.4²); `collinear`, 6 groups of 4 features with correlation 0.95, and the weights of 2 groups
are 1. Every method has the λ that is best for it on average. `used` is the share of weights that are not 0, `support`
the share rightly 0 or not, `split` how unequally the first two groups of 4 share: the standard deviation of a group's
weights over their mean size.

DLD 9.4 says that L1 picks one of a correlated group. Of exactly equal columns it may take any mixture: only the sum of
their weights is determined (`twins`).

Systems: regularized-erm
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.classic.elastic_net import elastic_net
from descend.classic.ridge import ridge
from descend.labs._evidence import Above, AtLeast, AtMost, Below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.216",)
PRINTED = (
    "L2 shrinks all, for dense signals and collinear inputs; L1 gives sparsity and picks one of a"
    " correlated group arbitrarily (erratum: of equal columns it may take any mixture); the elastic"
    " net does both."
)
CLAIM = (
    "A sparse truth is learned better with L1, a dense one with L2. Among features that move together L1 shares the"
    " weight unequally and L2 equally; the elastic net shares about as L2 does, and still sets weights to exactly 0."
)
PREDICTIONS = (
    Above(
        "lasso better on sparse",
        3,
        "Ridge's excess error less lasso's on a sparse truth, in standard errors.",
        refuted=-3,
    ),
    Above(
        "ridge better on dense",
        3,
        "Lasso's excess error less ridge's on a dense truth, in standard errors.",
        refuted=-3,
    ),
    Above(
        "lasso shares unequally",
        1.5,
        "How unequally the lasso shares in correlated groups, over the larger of the two others.",
    ),
    Below(
        "most used with L1",
        1,
        "The larger share of weights that are not 0, of lasso and elastic net: some are exactly 0.",
    ),
    AtLeast("used by ridge", 1, "The same for ridge: none is 0."),
    AtMost(
        "ridge's twins",
        1e-9,
        "The difference of the weights that ridge gives to two equal columns.",
    ),
)
CONTROLS = (
    AtLeast(
        "best λ inside",
        1,
        "1 where the best λ of every method lies inside the grid: else the comparison is not of the best.",
    ),
)
SCOPE = "Linear models of 24 features and 30 examples, every method with its best λ."
DESIGNS = ("sparse", "dense", "collinear")
METHODS = ("ridge", "lasso", "elastic net")
FEATURES, EXAMPLES, GROUP, NOISE = 24, 30, 4, 1.0
LAMBDAS = torch.logspace(-0.5, 2, 8, dtype=torch.float64)
BUDGET = 4.0
PRICE = 45  # training sets of every design that a second of one core buys


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Errors of three methods on three designs, over 40 training sets or more."""
    sets = max(40, round(PRICE * budget))
    random = torch.Generator().manual_seed(seed)
    rows: dict[str, list[Any]] = {}
    gaps: dict[str, list[float]] = {}
    paths: dict[str, Any] = {"lambda": LAMBDAS.tolist()}
    for design in DESIGNS:
        w, sigma = truth(design, random)
        x = torch.randn(sets, EXAMPLES, FEATURES, dtype=torch.float64, generator=random)
        x = x @ torch.linalg.cholesky(sigma).T
        y = x @ w + NOISE * torch.randn(sets, EXAMPLES, dtype=torch.float64, generator=random)
        excess = {}
        for method in METHODS:
            fitted = fits(method, x, y)  # (sets, λ, d)
            error = torch.einsum("...i,ij,...j->...", fitted - w, sigma, fitted - w)
            best = int(error.mean(0).argmin())
            excess[method] = error[:, best]
            for name, value in summary(fitted[:, best], w, sigma).items():
                rows.setdefault(name, []).append(value)
            rows.setdefault("design", []).append(design)
            rows.setdefault("method", []).append(method)
            rows.setdefault("lam", []).append(float(LAMBDAS[best]))
            if design == "sparse":
                paths[method] = fitted[0].T.tolist()
        gap = excess["lasso"] - excess["ridge"]
        gaps[design] = [float(gap.mean()), float(gap.std() / math.sqrt(sets))]
    return {**rows, "sets": sets, "lasso_minus_ridge": gaps, "paths": paths, "twins": twins(random)}


def truth(design: str, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """The weights w (d) and the covariance Σ (d, d) of the features."""
    w, sigma = torch.zeros(FEATURES, dtype=torch.float64), torch.eye(FEATURES, dtype=torch.float64)
    if design == "sparse":
        w[:4] = torch.tensor([2.0, -2.0, 1.5, -1.5])
    elif design == "dense":
        w = 0.4 * torch.randn(FEATURES, dtype=torch.float64, generator=random)
    else:
        w[: 2 * GROUP] = 1.0
        block = torch.full((GROUP, GROUP), 0.95, dtype=torch.float64).fill_diagonal_(1.0)
        sigma = torch.block_diag(*[block] * (FEATURES // GROUP))
    return w, sigma


def fits(method: str, x: Tensor, y: Tensor) -> Tensor:
    """The weights for every training set and every λ: (sets, λ, d)."""
    if method == "ridge":
        return ridge(x[:, None], y[:, None], LAMBDAS)
    return elastic_net(x[:, None], y[:, None], LAMBDAS, alpha=1.0 if method == "lasso" else 0.5, tolerance=1e-4)


def summary(fitted: Tensor, w: Tensor, sigma: Tensor) -> dict[str, float]:
    """Excess error, its two parts, the share of weights in use, right support, and how unequally groups share."""
    mean = fitted.mean(0)
    bias = (mean - w) @ sigma @ (mean - w)
    variance = torch.einsum("si,ij,sj->s", fitted - mean, sigma, fitted - mean).mean()
    groups = fitted[:, : 2 * GROUP].reshape(-1, GROUP)
    used = fitted != 0
    return {
        "excess": float(bias + variance),
        "bias2": float(bias),
        "variance": float(variance),
        "used": float(used.double().mean()),
        "support": float((used == (w != 0)).double().mean()),
        "split": float((groups.std(1) / groups.abs().mean(1).clamp_min(1e-9)).mean()),
    }


def twins(random: torch.Generator) -> dict[str, list[float]]:
    """Two equal columns of three: the weights of the two, for each method."""
    x = torch.randn(EXAMPLES, 2, dtype=torch.float64, generator=random)
    y = x @ torch.tensor([2.0, -1.0], dtype=torch.float64)
    x = torch.cat([x, x[:, :1]], 1)
    return {method: fits(method, x[None], y[None])[0, 3, [0, 2]].tolist() for method in METHODS}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    (sparse, a), (dense, b) = (numbers["lasso_minus_ridge"][design] for design in ("sparse", "dense"))
    one, two = numbers["twins"]["ridge"]
    split, used = ([numbers[name][6 + i] for i in range(3)] for name in ("split", "used"))
    low, high = LAMBDAS[0].item(), LAMBDAS[-1].item()
    return {
        "lasso better on sparse": -sparse / a,
        "ridge better on dense": dense / b,
        "lasso shares unequally": split[1] / max(split[0], split[2]),
        "most used with L1": max(used[1:]),
        "used by ridge": used[0],
        "ridge's twins": abs(one - two),
        "best λ inside": float(all(low * 1.001 < lam < high * 0.999 for lam in numbers["lam"])),
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Errors, split into bias² and variance, and the paths of ridge and lasso for one sparse training set."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(12, 3.9), layout="constrained")
    left, middle, right = fig.subplots(1, 3)
    colours = {"ridge": "#2b6cd8", "lasso": "#d66820", "elastic net": "#3a9a5b"}
    at = [i // 3 * 4 + i % 3 for i in range(9)]
    shades = [colours[method] for method in numbers["method"]]
    left.bar(at, numbers["bias2"], color=shades)
    left.bar(at, numbers["variance"], bottom=numbers["bias2"], color=shades, alpha=0.5)
    left.set_xticks([1, 5, 9], DESIGNS)
    left.set_title("excess error: bias² and (pale) variance", fontsize=11, loc="left", fontweight="bold")
    for method in METHODS:
        left.bar(0, 0, color=colours[method], label=method)
    left.legend(frameon=False, fontsize=9)
    for axes, method in ((middle, "ridge"), (right, "lasso")):
        for j, path in enumerate(numbers["paths"][method]):
            axes.plot(
                numbers["paths"]["lambda"], path, color=colours[method] if j < 4 else "0.75", lw=1.8 if j < 4 else 0.8
            )
        axes.set_xscale("log")
        axes.set_xlabel("λ")
        axes.set_title(f"{method}: weights, the true four in colour", fontsize=11, loc="left", fontweight="bold")
    for axes in (left, middle, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return fig
