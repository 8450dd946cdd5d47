"""Swin beside transformers: training steps of Swin-T with AdamW, eager and compiled.

Images of 224 × 224, batch 4, 1,000 classes, stochastic depth 0.1: 2,2,6,2 blocks of 96 .. 768 channels, windows of 7.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks.steps import engine, plain
from benchmarks.turns import take_turns

BATCH, SIDE, CLASSES = 4, 224, 1000


def images() -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return torch.randn(BATCH, 3, SIDE, SIDE, generator=random), torch.randint(CLASSES, (BATCH,), generator=random)


def ours(compiled: str = "off") -> Callable[[], object]:
    """descend's engine: a step of Training, as `descend train` takes it."""
    from descend.models.swin import SIZES, SwinForImageClassification
    from descend.tasks.classify import Classify

    torch.manual_seed(0)
    x, y = images()
    return engine(Classify(SwinForImageClassification(SIZES["swin-tiny"])), {"x": x, "y": y}, compiled)


def ours_compiled() -> Callable[[], object]:
    return ours("on")


def theirs(compiled: bool = False) -> Callable[[], object]:
    """transformers' SwinForImageClassification and the same fused AdamW in a plain loop."""
    from transformers import SwinConfig, SwinForImageClassification

    torch.manual_seed(0)
    x, y = images()
    model = SwinForImageClassification(SwinConfig(id2label={str(k): str(k) for k in range(CLASSES)}))
    return plain(model, lambda m: torch.nn.functional.cross_entropy(m(pixel_values=x).logits, y), compiled)


def theirs_compiled() -> Callable[[], object]:
    return theirs(True)


def measure(rounds: int = 5, calls: int = 2) -> list[dict[str, object]]:
    """Images a second of both."""
    from benchmarks.limits import sgemm_peak
    from descend.models.swin import SIZES
    from descend.theory.window_cost import swin_macs

    names = ("ours", "theirs", "ours_compiled", "theirs_compiled")
    times, memory = take_turns({name: f"benchmarks.swin:{name}" for name in names}, rounds, calls)
    best, peak = {name: min(values) for name, values in times.items()}, sgemm_peak()
    c = SIZES["swin-tiny"]
    flops = 6 * BATCH * (swin_macs(SIDE, SIDE, c.width, c.depths, c.window) + c.features * CLASSES)
    rows = []
    for kind in ("", "_compiled"):
        a, b = best[f"ours{kind}"], best[f"theirs{kind}"]
        rows.append({
            "name": f"Swin-T training step{', compiled' if kind else ''}", "ours": BATCH / a, "theirs": BATCH / b,
            "unit": "images/s", "ratio": b / a, "bar": 1.15,
            "note": f"{flops / a / 1e9:.0f} GFLOP/s, {flops / a / peak:.0%} of sgemm; theirs {flops / b / peak:.0%}; "
            f"peak memory {memory[f'ours{kind}'] / 1e6:.0f} MB against {memory[f'theirs{kind}'] / 1e6:.0f} MB",
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
