"""MAF, IAF or coupling: which direction of a flow is cheap, and how the other grows with the dimension.

    MAF        density 1 pass of the network, sampling D          for density estimation
    IAF        sampling 1 pass, density D                         for generation
    coupling   1 pass each: 2 groups instead of D, the first of which needs no network

One layer of each kind with the same width, D from 2 to 64; passes are counted by a hook, and time is the least of
several rounds.

Systems: inverse-autoregressive-flow, masked-autoregressive-flow
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.labs._evidence import Above, AtMost
from descend.nn.flow.autoregressive import InverseAutoregressive, MaskedAutoregressive
from descend.nn.flow.bijection import Bijection
from descend.nn.flow.coupling import Conditioner, Coupling
from descend.nn.flow.made import MADE
from descend.nn.flow.transforms import Affine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.82", "DLN-C.79", "DLN-C.81")
PRINTED = (
    "MAF for density estimation, IAF for generation: the sequential cost is linear in D; coupling"
    " is autoregressive with 2 groups instead of D."
)
CLAIM = (
    "MAF takes one pass of its network for the density and D for a sample, IAF the other way round, and a coupling"
    " layer one for each; the slow direction's time grows with D."
)
PREDICTIONS = (
    AtMost(
        "passes off",
        0,
        "By how many passes the counts differ from 1 and D, summed over kinds and sizes.",
    ),
    Above(
        "slow over fast",
        8,
        "Seconds of the slow direction over those of the fast at D = 64, the lesser of MAF and IAF.",
        refuted=0,
    ),
)
SCOPE = "One layer of each kind, D from 2 to 64, width 64, one core."
KINDS = ("MAF", "IAF", "coupling")
SIZES = (2, 8, 32, 64)
WIDTH, BATCH = 64, 64
BUDGET = 3.0
PRICE = 4  # rounds that a second of one core buys


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Passes and seconds of both directions, for every kind and D."""
    rounds = max(2, round(PRICE * budget))
    found: dict[str, Any] = {"D": list(SIZES), "rounds": rounds}
    for kind in KINDS:
        rows = [look(kind, size, seed, rounds) for size in SIZES]
        found[kind] = {key: [row[key] for row in rows] for key in rows[0]}
    return found


def make(kind: str, size: int) -> tuple[Bijection, nn.Module]:
    """A layer and its network."""
    h = Affine()
    if kind == "coupling":
        kept = size - size // 2
        network: nn.Module = Conditioner(kept, size - kept, h.numbers, WIDTH, 1)
        return Coupling(size, range(kept), network, h), network
    made = MADE(range(1, size + 1), h.numbers, WIDTH, 1)
    return (MaskedAutoregressive if kind == "MAF" else InverseAutoregressive)(made, h), made


def look(kind: str, size: int, seed: int, rounds: int) -> dict[str, float]:
    """One layer: how often the network is called, how long both directions take, and whether they undo each other."""
    torch.manual_seed(seed)
    layer, network = make(kind, size)
    calls: list[int] = []
    network.register_forward_hook(lambda *_: calls.append(1))
    z = torch.randn(BATCH, size, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        x, _ = layer(z)
        sampling = len(calls)
        back, _ = layer.inverse(x)
        density = len(calls) - sampling
        return {
            "sampling_passes": sampling,
            "density_passes": density,
            "sampling_seconds": clock(layer.forward, z, rounds),
            "density_seconds": clock(layer.inverse, x, rounds),
            "round_trip_error": (back - z).abs().max().item(),
        }


def clock(move: Callable[[Tensor], object], x: Tensor, rounds: int) -> float:
    """The least of several times."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        move(x)
        times.append(time.perf_counter() - start)
    return min(times)


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    maf, iaf, coupling, sizes = numbers["MAF"], numbers["IAF"], numbers["coupling"], numbers["D"]
    ones = [1] * len(sizes)
    counts = [(maf["density_passes"], ones), (maf["sampling_passes"], sizes)]
    counts += [(iaf["density_passes"], sizes), (iaf["sampling_passes"], ones)]
    counts += [(coupling["density_passes"], ones), (coupling["sampling_passes"], ones)]
    slow = [(maf["sampling_seconds"], maf["density_seconds"]), (iaf["density_seconds"], iaf["sampling_seconds"])]
    return {
        "passes off": sum(abs(a - b) for found, right in counts for a, b in zip(found, right, strict=True)),
        "slow over fast": min(a[-1] / b[-1] for a, b in slow),
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Two panels: seconds of the density and of sampling against D."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, what in zip(fig.subplots(1, 2, sharey=True), ("density", "sampling"), strict=True):
        for kind, colour in zip(KINDS, ("#2b6cd8", "#d66820", "#3a9a5b"), strict=True):
            axes.plot(numbers["D"], [1e3 * s for s in numbers[kind][f"{what}_seconds"]], "o-", color=colour, label=kind)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("D")
        axes.set_title(f"{what}, ms", fontsize=11, loc="left", fontweight="bold")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    fig.axes[0].legend(frameon=False, fontsize=9)
    return fig
