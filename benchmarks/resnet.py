"""A ResNet-18 training step beside transformers: images of 64×64, batch 32, 10 classes, AdamW."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from benchmarks.steps import engine, plain
from benchmarks.turns import take_turns

SIDE, BATCH, CLASSES = 64, 32, 10


def images() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    x = torch.randn(BATCH, 3, SIDE, SIDE, generator=random)
    return {"x": x, "y": torch.randint(CLASSES, (BATCH,), generator=random)}


def ours(compiled: str = "off") -> Callable[[], object]:
    """descend's engine: a step of Training, as `descend train` takes it."""
    from descend.models.resnet import SIZES, ResNet
    from descend.tasks.classify import Classify
    from descend.weights.labels import Labels

    torch.manual_seed(0)
    labels = Labels(tuple(map(str, range(CLASSES))))
    return engine(Classify(ResNet(replace(SIZES["resnet-18"], labels=labels))), images(), compiled)


def ours_compiled() -> Callable[[], object]:
    return ours("on")


def theirs(compiled: bool = False) -> Callable[[], object]:
    """transformers' ResNetForImageClassification and the same fused AdamW in a plain loop."""
    from transformers import ResNetConfig, ResNetForImageClassification

    torch.manual_seed(0)
    config = ResNetConfig(hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2], layer_type="basic")
    config.num_labels = CLASSES
    x, y = images().values()
    model = ResNetForImageClassification(config)
    return plain(model, lambda m: torch.nn.functional.cross_entropy(m(x).logits, y), compiled)


def theirs_compiled() -> Callable[[], object]:
    return theirs(compiled=True)


def flops() -> int:
    """Of a step forward and backward, as torch counts them: zeros around an image count as pixels."""
    from torch.utils.flop_counter import FlopCounterMode

    from descend.models.resnet import SIZES, ResNet

    with torch.device("meta"):
        model, x = ResNet(SIZES["resnet-18"]), torch.empty(BATCH, 3, SIDE, SIDE)
    with FlopCounterMode(display=False) as counter:
        model(x).sum().backward()
    return int(counter.get_total_flops())


def measure(rounds: int = 5, calls: int = 4) -> list[dict[str, object]]:
    """Images a second of both, as written and compiled."""
    from benchmarks.limits import sgemm_peak

    names = ("ours", "theirs", "ours_compiled", "theirs_compiled")
    times, memory = take_turns({name: f"benchmarks.resnet:{name}" for name in names}, rounds, calls)
    best, peak, work = {name: min(values) for name, values in times.items()}, sgemm_peak(), flops()
    rows = []
    for kind, suffix in (("eager", ""), ("compiled", "_compiled")):
        a, b = best[f"ours{suffix}"], best[f"theirs{suffix}"]
        rows.append({
            "name": f"ResNet-18 training step, {kind}", "ours": BATCH / a, "theirs": BATCH / b, "unit": "images/s",
            "ratio": b / a, "bar": 1.1,
            "note": f"{work / a / 1e9:.0f} GFLOP/s, {work / a / peak:.0%} of sgemm; theirs {work / b / peak:.0%}; "
            f"peak memory {memory[f'ours{suffix}'] / 1e6:.0f} MB against {memory[f'theirs{suffix}'] / 1e6:.0f} MB",
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
