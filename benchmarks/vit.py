"""A ViT training step beside transformers: 6 layers, width 384, 197 tokens (224 pixels, patches of 16), batch 8."""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks.steps import engine, plain
from benchmarks.turns import take_turns

DEPTH, WIDTH, HEADS, SIDE, PATCH, BATCH, CLASSES = 6, 384, 6, 224, 16, 8, 100
PATCHES = (SIDE // PATCH) ** 2
TOKENS = BATCH * (PATCHES + 1)
# Matrix products of a step, forward and twice that backward; the pixels need no gradient.
BLOCKS = 3 * 2 * TOKENS * DEPTH * (12 * WIDTH**2 + 2 * (PATCHES + 1) * WIDTH)
ALL = BLOCKS + 2 * 2 * BATCH * PATCHES * 3 * PATCH**2 * WIDTH + 3 * 2 * BATCH * WIDTH * CLASSES
# Our last block computes queries, output and MLP of the class token only.
LEFT_OUT = 3 * 2 * (TOKENS - BATCH) * (10 * WIDTH**2 + 2 * (PATCHES + 1) * WIDTH)


def images() -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return torch.randn(BATCH, 3, SIDE, SIDE, generator=random), torch.randint(CLASSES, (BATCH,), generator=random)


def ours(compiled: str = "off") -> Callable[[], object]:
    """descend's engine: a step of Training, as `descend train` takes it."""
    from descend.models.vit import ViTConfig, ViTForImageClassification
    from descend.tasks.classify import Classify
    from descend.weights.labels import Labels

    torch.manual_seed(0)
    labels, (x, y) = Labels(tuple(map(str, range(CLASSES)))), images()
    config = ViTConfig(3, SIDE, PATCH, WIDTH, DEPTH, HEADS, 4 * WIDTH, labels=labels)
    return engine(Classify(ViTForImageClassification(config)), {"x": x, "y": y}, compiled)


def ours_compiled() -> Callable[[], object]:
    return ours("on")


def theirs(compiled: bool = False) -> Callable[[], object]:
    """transformers' ViTForImageClassification and the same fused AdamW in a plain loop."""
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=WIDTH, num_hidden_layers=DEPTH, num_attention_heads=HEADS, intermediate_size=4 * WIDTH,
        image_size=SIDE, patch_size=PATCH, id2label={str(k): str(k) for k in range(CLASSES)},
    )  # fmt: skip
    x, y = images()
    model = ViTForImageClassification(config)
    return plain(model, lambda m: torch.nn.functional.cross_entropy(m(pixel_values=x).logits, y), compiled)


def theirs_compiled() -> Callable[[], object]:
    return theirs(True)


def measure(rounds: int = 5, calls: int = 3) -> list[dict[str, object]]:
    """Images a second of both, eager and compiled, and the share of the matrix-product peak."""
    from benchmarks.limits import sgemm_peak

    names = ("ours", "theirs", "ours_compiled", "theirs_compiled")
    times, memory = take_turns({name: f"benchmarks.vit:{name}" for name in names}, rounds, calls)
    best, peak = {name: min(values) for name, values in times.items()}, sgemm_peak()
    rows = []
    for suffix in ("", "_compiled"):
        a, b = best["ours" + suffix], best["theirs" + suffix]
        rows.append({
            "name": f"ViT training step, {'compiled' if suffix else 'eager'}",
            "ours": BATCH / a, "theirs": BATCH / b, "unit": "images/s", "ratio": b / a, "bar": 1.05,
            "note": f"{(ALL - LEFT_OUT) / a / 1e9:.0f} GFLOP/s, {(ALL - LEFT_OUT) / a / peak:.0%} of sgemm; theirs "
            f"{ALL / b / peak:.0%}; {LEFT_OUT / ALL:.0%} less to compute, since only the class token is read; "
            f"peak memory {memory['ours' + suffix] / 1e6:.0f} MB against {memory['theirs' + suffix] / 1e6:.0f} MB",
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
