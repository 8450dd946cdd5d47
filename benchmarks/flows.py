"""Training steps of flows beside zuko: RealNVP and MAF of the same sizes on points of 2 and 16 dimensions, AdamW."""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks.steps import engine, plain
from benchmarks.turns import take_turns

BATCH, LAYERS, WIDTH = 256, 8, 64
SIZES = (2, 16)


def points(size: int) -> torch.Tensor:
    return torch.randn(BATCH, size, generator=torch.Generator().manual_seed(0))


def ours(kind: str, size: int) -> Callable[[], object]:
    """descend's engine: a step of Training, as `descend train` takes it."""
    from descend.models.maf import MAF, MAFConfig
    from descend.models.realnvp import RealNVP, RealNVPConfig
    from descend.tasks.density import MaximumLikelihood

    torch.manual_seed(0)
    if kind == "maf":
        return engine(MaximumLikelihood(MAF(MAFConfig(size, LAYERS, WIDTH, 2))), {"x": points(size)})
    return engine(MaximumLikelihood(RealNVP(RealNVPConfig(size, LAYERS, WIDTH, 2))), {"x": points(size)})


def theirs(kind: str, size: int) -> Callable[[], object]:
    """zuko's flow in a plain loop with the same fused AdamW."""
    import zuko  # type: ignore[import-untyped]

    torch.manual_seed(0)
    make = zuko.flows.MAF if kind == "maf" else zuko.flows.RealNVP
    model, x = make(size, transforms=LAYERS, hidden_features=(WIDTH, WIDTH)), points(size)
    return plain(model, lambda flow: -flow().log_prob(x).mean())


def realnvp_2() -> Callable[[], object]:
    return ours("realnvp", 2)


def realnvp_2_zuko() -> Callable[[], object]:
    return theirs("realnvp", 2)


def realnvp_16() -> Callable[[], object]:
    return ours("realnvp", 16)


def realnvp_16_zuko() -> Callable[[], object]:
    return theirs("realnvp", 16)


def maf_2() -> Callable[[], object]:
    return ours("maf", 2)


def maf_2_zuko() -> Callable[[], object]:
    return theirs("maf", 2)


def maf_16() -> Callable[[], object]:
    return ours("maf", 16)


def maf_16_zuko() -> Callable[[], object]:
    return theirs("maf", 16)


def measure(rounds: int = 7, calls: int = 40) -> list[dict[str, object]]:
    """Points a second of both."""
    rows = []
    for kind, name in (("realnvp", "RealNVP"), ("maf", "MAF")):
        for size in SIZES:
            targets = {who: f"benchmarks.flows:{kind}_{size}{who}" for who in ("", "_zuko")}
            times, memory = take_turns(targets, rounds, calls)
            a, b = min(times[""]), min(times["_zuko"])
            rows.append({
                "name": f"{name} training step, {size} dimensions", "ours": BATCH / a, "theirs": BATCH / b,
                "unit": "points/s", "ratio": b / a, "bar": 1.5,
                "note": f"{1e3 * a:.2f} ms against {1e3 * b:.2f} of zuko; {LAYERS} layers of {WIDTH}, batch {BATCH}; "
                f"peak memory {memory[''] / 1e6:.0f} MB against {memory['_zuko'] / 1e6:.0f} MB",
            })  # fmt: skip
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
