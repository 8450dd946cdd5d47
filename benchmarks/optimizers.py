"""One step of every optimizer of ours on 10 million parameters, against torch's AdamW, foreach and fused.

All take turns in one process on the same parameters: a step is short, and its cost does not depend on the values.
"""

from __future__ import annotations

import time

import torch
from torch import nn

from descend.optim.adaptive import AdagradInside, AdamInside, RMSPropInside
from descend.optim.gains import LocalGains, PlainRprop, VelocityGains
from descend.optim.lion import Lion
from descend.optim.momentum import HeavyBall
from descend.optim.subgradient import Subgradient
from descend.optim.window import GradientWindow

OURS = (
    *(Lion, HeavyBall, Subgradient, RMSPropInside, AdagradInside, AdamInside),
    *(GradientWindow, LocalGains, VelocityGains, PlainRprop),
)


def parameters() -> list[nn.Parameter]:
    """10 million numbers as a transformer has them: a few large matrices, many small vectors."""
    torch.manual_seed(0)
    shapes = [(1024, 1024)] * 9 + [(512, 1024)] + [(1024,)] * 20 + [(64,)] * 20
    found = [nn.Parameter(torch.randn(shape)) for shape in shapes]
    for p in found:
        p.grad = torch.randn_like(p)
    return found


def measure(rounds: int = 12) -> list[dict[str, object]]:
    params = parameters()
    optimizers = {method.__name__: method(params, lr=1e-6) for method in OURS}
    optimizers |= {name: torch.optim.AdamW(params, 1e-6, **{name: True}) for name in ("fused", "foreach")}
    best = dict.fromkeys(optimizers, float("inf"))
    for turn in range(rounds):
        for name, optimizer in optimizers.items():
            began = time.perf_counter()
            optimizer.step()
            took = 1e3 * (time.perf_counter() - began)
            best[name] = min(best[name], took) if turn > 1 else best[name]
    return [
        {"name": f"step of {method.__name__}, 10 M parameters", "ours": best[method.__name__],
         "theirs": best["foreach"], "unit": "ms", "ratio": best["foreach"] / best[method.__name__], "bar": 1 / 1.3,
         "note": f"theirs is torch's foreach AdamW; its fused one takes {best['fused']:.3g} ms"}
        for method in OURS
    ]  # fmt: skip


if __name__ == "__main__":
    for row in measure():
        print(row)
