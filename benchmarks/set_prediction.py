"""Training steps of DETR and RT-DETR beside transformers: images of 256×256, batch 4, five objects each, AdamW.

Both sides train every parameter but the frozen batch norms', have losses on every decoder layer, and no denoising.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from benchmarks.steps import engine, plain
from benchmarks.turns import take_turns

SIDE, BATCH, OBJECTS, CLASSES = 256, 4, 5, 10
DEPTHS, WIDTHS = [2, 2, 2, 2], [64, 128, 256, 512]


def scenes() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    low = torch.rand(BATCH, OBJECTS, 2, generator=random) * 150
    boxes = torch.cat([low, low + 20 + torch.rand(BATCH, OBJECTS, 2, generator=random) * 80], dim=-1)
    x = torch.randn(BATCH, 3, SIDE, SIDE, generator=random)
    return {"x": x, "boxes": boxes, "classes": torch.randint(CLASSES, (BATCH, OBJECTS), generator=random)}


def labels() -> list[dict[str, torch.Tensor]]:
    """As transformers takes them."""
    _, boxes, classes = scenes().values()
    low, high = boxes[..., :2] / SIDE, boxes[..., 2:] / SIDE
    shares = torch.cat([(low + high) / 2, high - low], dim=-1)
    return [{"class_labels": c, "boxes": b} for b, c in zip(shares, classes, strict=True)]


def calm(model: Any) -> Any:
    """Frozen norms that shrink what they see: those of an untrained backbone would let it grow without end."""
    for name, buffer in model.named_buffers():
        if name.endswith("running_var"):
            buffer.fill_(9.0)
    return model


def our_detr() -> Callable[[], object]:
    """descend's engine: a step of Training, as `descend train` takes it."""
    from descend.losses.detection.set_prediction import SetPrediction
    from descend.models.detr import Detr, DetrConfig
    from descend.models.resnet import ResNetConfig
    from descend.tasks.detect import Detect
    from descend.weights.labels import Labels

    torch.manual_seed(0)
    config = DetrConfig(
        backbone=ResNetConfig(widths=tuple(WIDTHS), depths=tuple(DEPTHS), block="basic"), depth=3, decoder_depth=3,
        dropout=0.0, labels=Labels(tuple(map(str, range(CLASSES)))),
    )  # fmt: skip
    return engine(Detect(calm(Detr(config)), SetPrediction(), CLASSES), scenes())


def their_detr() -> Callable[[], object]:
    """transformers' DetrForObjectDetection and the same fused AdamW in a plain loop."""
    import transformers

    torch.manual_seed(0)
    backbone = transformers.ResNetConfig(
        hidden_sizes=WIDTHS, depths=DEPTHS, layer_type="basic", out_features=["stage4"]
    )
    config = transformers.DetrConfig(
        use_timm_backbone=False, backbone_config=backbone, encoder_layers=3, decoder_layers=3, dropout=0.0,
        auxiliary_loss=True, num_labels=CLASSES,
    )  # fmt: skip
    model = transformers.DetrForObjectDetection(config)
    model.model.unfreeze_backbone()
    return compare(model)


def compare(model: Any) -> Callable[[], object]:
    x, y = scenes()["x"], labels()
    return plain(calm(model), lambda m: m(x, labels=y).loss)


def our_rt_detr() -> Callable[[], object]:
    from descend.losses.detection.varifocal import VarifocalSetPrediction
    from descend.models.rt_detr import SIZES, RTDetr
    from descend.tasks.detect import Detect
    from descend.weights.labels import Labels

    torch.manual_seed(0)
    names = Labels(tuple(map(str, range(CLASSES))))
    config = replace(SIZES["rtdetr-r18vd"], queries=100, denoising=0, labels=names)
    return engine(Detect(calm(RTDetr(config)), VarifocalSetPrediction(), CLASSES), scenes())


def their_rt_detr() -> Callable[[], object]:
    """transformers' RTDetrForObjectDetection."""
    import transformers

    torch.manual_seed(0)
    backbone = transformers.RTDetrResNetConfig(
        hidden_sizes=WIDTHS, depths=DEPTHS, layer_type="basic", out_indices=[2, 3, 4]
    )
    config = transformers.RTDetrConfig(
        backbone_config=backbone, encoder_in_channels=WIDTHS[1:], hidden_expansion=0.5, decoder_layers=3,
        num_queries=100, num_denoising=0, num_labels=CLASSES,
    )  # fmt: skip
    return compare(transformers.RTDetrForObjectDetection(config))


def measure(rounds: int = 5, calls: int = 3) -> list[dict[str, object]]:
    """Images a second of both."""
    names = ("our_detr", "their_detr", "our_rt_detr", "their_rt_detr")
    times, memory = take_turns({name: f"benchmarks.set_prediction:{name}" for name in names}, rounds, calls)
    best = {name: min(values) for name, values in times.items()}
    rows = []
    for name, title in {"detr": "DETR (R18, 3 + 3 layers)", "rt_detr": "RT-DETR (R18-vd)"}.items():
        a, b = best[f"our_{name}"], best[f"their_{name}"]
        sizes = f"{memory[f'our_{name}'] / 1e6:.0f} MB against {memory[f'their_{name}'] / 1e6:.0f} MB"
        rows.append({
            "name": f"{title} training step, 256×256", "ours": BATCH / a, "theirs": BATCH / b, "unit": "images/s",
            "ratio": b / a, "bar": 1.1, "note": f"peak memory {sizes}",
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
