"""What a flow's log-determinant costs: a general Jacobian, a triangular one, a trace, an estimated trace.

    determinant of a general Jacobian   D reverse passes for its rows, then O(D³)
    determinant of a triangular one     O(D): the diagonal, which an autoregressive layer gives in one pass
    trace                               D reverse passes for the diagonal, then O(D)
    Hutchinson's estimate εᵀ A ε        1 reverse pass

One hidden layer of fixed width, D from 2 to 128. Reverse passes are counted where autograd is called; time is the least
of several rounds. Also measured: the mean and spread of the estimate, which is unbiased.

Systems: hutchinson-trace
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.labs._evidence import Above, AtMost
from descend.nn.flow.autoregressive import MaskedAutoregressive
from descend.nn.flow.made import MADE
from descend.nn.flow.transforms import Affine
from descend.ops.ode.divergence import estimate_divergence, exact_divergence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.88", "DLN-C.89")
PRINTED = (
    "Determinant O(D³), trace O(D) given the Jacobian, whose elements need a pass each;"
    " Hutchinson's estimate takes one pass and is unbiased."
)
CLAIM = (
    "The exact trace of a Jacobian takes D reverse passes and Hutchinson's unbiased estimate one; time follows, and a"
    " triangular determinant is as cheap as the estimate."
)
PREDICTIONS = (
    AtMost("passes off", 0, "By how many the counts of reverse passes differ from D and 1."),
    AtMost(
        "bias",
        4,
        "Mean of the estimate less the exact trace, in standard errors, the largest.",
    ),
    Above(
        "exact over estimate",
        8,
        "Seconds of the exact trace over those of the estimate and the triangular determinant at the largest D.",
        refuted=0,
    ),
)
SCOPE = "One hidden layer of width 64, D from 2 to 128, one core."
WAYS = ("general determinant", "exact trace", "estimated trace", "triangular determinant")
SIZES = (2, 8, 32, 128)
WIDTH, BATCH, DRAWS = 64, 8, 400
BUDGET = 4.0
PRICE = 1.5  # rounds that a second of one core buys


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Reverse passes and seconds of each way for every D, and the error of the estimate's mean in its own spreads."""
    rounds = max(2, round(PRICE * budget))
    found: dict[str, Any] = {"D": list(SIZES), "rounds": rounds}
    for way in WAYS:
        rows = [look(way, size, seed, rounds) for size in SIZES]
        found[way] = {"passes": [row[0] for row in rows], "seconds": [row[1] for row in rows]}
    found["bias"] = [bias(size, seed) for size in SIZES]
    return found


def network(size: int, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(size, WIDTH), nn.Tanh(), nn.Linear(WIDTH, size))


def look(way: str, size: int, seed: int, rounds: int) -> tuple[int, float]:
    """Reverse passes, and the least time of several."""
    f, z = network(size, seed), torch.randn(BATCH, size, generator=torch.Generator().manual_seed(seed))
    triangular = MaskedAutoregressive(MADE(range(1, size + 1), 2, WIDTH, 1), Affine())
    ways: dict[str, Callable[[], object]] = {
        "general determinant": lambda: torch.linalg.slogdet(jacobian(f, z)),
        "exact trace": lambda: exact_divergence(f, z),
        "estimated trace": lambda: estimate_divergence(f, z, torch.ones_like(z)),
        "triangular determinant": lambda: triangular.inverse(z),
    }
    passes: list[int] = []
    handle = f.register_full_backward_hook(lambda *_: passes.append(1))
    with torch.no_grad():
        ways[way]()
        handle.remove()
        times = []
        for _ in range(rounds):
            start = time.perf_counter()
            ways[way]()
            times.append(time.perf_counter() - start)
    return len(passes), min(times)


def jacobian(f: nn.Module, z: Tensor) -> Tensor:
    """∂f_i/∂z_j of each row (b, D, D), a reverse pass for each i."""
    with torch.enable_grad():
        z = z.detach().requires_grad_(True)
        v = f(z)
        rows = [torch.autograd.grad(v[:, i].sum(), z, retain_graph=True)[0] for i in range(z.shape[1])]
    return torch.stack(rows, 1)


@torch.no_grad()
def bias(size: int, seed: int) -> float:
    """How far the mean of many estimates is from the trace, in standard errors; within ±4 by chance."""
    f, random = network(size, seed), torch.Generator().manual_seed(seed)
    z = torch.randn(1, size, generator=random).expand(DRAWS, size)
    signs = torch.where(torch.rand(DRAWS, size, generator=random) < 0.5, -1.0, 1.0)
    estimates = estimate_divergence(f, z, signs)[1]
    exact = exact_divergence(f, z[:1])[1]
    return ((estimates.mean() - exact[0]) / (estimates.std() / DRAWS**0.5)).item()


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    exact, estimate, sizes = numbers["exact trace"], numbers["estimated trace"], numbers["D"]
    counts = [(exact, sizes), (numbers["general determinant"], sizes), (estimate, [1] * len(sizes))]
    cheap = max(estimate["seconds"][-1], numbers["triangular determinant"]["seconds"][-1])
    return {
        "passes off": sum(abs(a - b) for way, right in counts for a, b in zip(way["passes"], right, strict=True)),
        "bias": max(map(abs, numbers["bias"])),
        "exact over estimate": exact["seconds"][-1] / cheap,
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Seconds of each way against D."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.8), layout="constrained")
    axes = fig.subplots()
    for way, colour in zip(WAYS, ("0.5", "#d66820", "#2b6cd8", "#3a9a5b"), strict=True):
        axes.plot(numbers["D"], [1e3 * s for s in numbers[way]["seconds"]], "o-", color=colour, label=way)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("D")
    axes.set_title("milliseconds", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False, fontsize=9)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
