"""Images with objects on their way to a detector: how much of the speed on ready tensors is left.

mosaic        generated scenes of 96 × 96, mosaics, scale, shift, flip and colour by one worker while a step trains on
              the batch before; theirs: the same steps on one batch that is always the same
photographs   JPEG files of 320 × 240, decoded, letterboxed to 224 × 224, scaled, shifted, flipped, coloured and
              standardized by two workers; nothing trains. theirs: 504 images a second, what classification's
              pipeline reached on this kind of machine (torchvision's transforms: 720)

The detector is yolo-scenes, batch 16, AdamW.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.turns import take_turns

BATCH, STEPS, PHOTOS, REACHED = 16, 10_000, 320, 504.0


def build(mosaic: float) -> tuple[Any, Any]:
    """The recipe's task in training, and its stream."""
    from dataclasses import replace

    from descend import recipes
    from descend.data.detection.augment import ObjectAugment
    from descend.data.detection.source import DetectionSource

    changes = ObjectAugment(mosaic, 0.0, 0.5, 0.3, 0.1, 0.02, 0.4, 0.3) if mosaic else ObjectAugment()
    data = DetectionSource(scenes=600, augment=changes, workers=1 if mosaic else 0)
    recipe = recipes.get("yolo-scenes")
    parts = replace(recipe, data=data, loop=replace(recipe.loop, batch=BATCH, steps=STEPS)).build()
    return parts.task.train(), parts.stream


def steps(task: Any, next_batch: Callable[[], dict[str, torch.Tensor]]) -> Callable[[], object]:
    """A training step on what comes next."""
    optimizer = torch.optim.AdamW(task.parameters(), lr=1e-4)

    def step() -> float:
        batch = next_batch()
        optimizer.zero_grad(set_to_none=True)
        [move] = task.moves(batch)
        loss = move.value().total()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def ours() -> Callable[[], object]:
    task, stream = build(0.5)
    return steps(task, lambda: next(stream))


def theirs() -> Callable[[], object]:
    task, stream = build(0.0)
    batch = next(stream)
    return steps(task, lambda: batch)


def write_photographs(root: Path) -> None:
    """Scenes as JPEG files, in YOLO's form."""
    from PIL import Image

    from descend.data.images.pixels import to_pixels
    from descend.data.toys.scenes import scenes

    found = scenes(PHOTOS, 320, torch.Generator().manual_seed(0), (1, 4))
    for name in ("images", "labels"):
        (root / name).mkdir()
    for i, x in enumerate(found.x):
        Image.fromarray(to_pixels(x)[:240]).save(root / "images" / f"{i:03d}.jpg", quality=90)
        boxes = found.box[i][found.present[i]].clamp(max=240).tolist()
        lines = [f"0 {(a + c) / 640} {(b + d) / 480} {(c - a) / 320} {(d - b) / 240}" for a, b, c, d in boxes]
        (root / "labels" / f"{i:03d}.txt").write_text("\n".join(lines))


def read_photographs(seconds: float = 8.0) -> float:
    """Images a second from files to standardized batches, by two workers."""
    from descend.data.detection.augment import ObjectAugment
    from descend.data.detection.prepare import DetectionPreprocessing
    from descend.data.detection.source import DetectionSource

    with tempfile.TemporaryDirectory() as folder:
        write_photographs(Path(folder))
        changes = ObjectAugment(0.0, 0.0, 0.5, 0.3, 0.1, 0.02, 0.4, 0.3)
        data = DetectionSource(folder, size=224, memory=0.0, workers=2, augment=changes)
        splits = data.read()
        prepare = DetectionPreprocessing.fit(splits.train, data.framing, splits.labels)
        stream = data.shuffle(splits.train, prepare, BATCH, 0, (0, 1), (BATCH, STEPS))
        for _ in range(10):
            next(stream)
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            count += len(next(stream)["ids"])
        return count / (time.perf_counter() - began)


def measure() -> list[dict[str, object]]:
    """Images a second of both."""
    names = {name: f"benchmarks.object_pipeline:{name}" for name in ("ours", "theirs")}
    times, _ = take_turns(names, rounds=4, calls=8)
    typical = {name: sorted(found)[len(found) // 2] for name, found in times.items()}
    mine, ready = (BATCH / typical[name] for name in ("ours", "theirs"))
    photographs = read_photographs()
    note = "yolo-scenes, 96×96, batch 16, mosaic 0.5, one worker; theirs: a tensor that is there"
    other = "320×240 JPEG to 224×224, two workers, no training; theirs: 504, classification's pipeline"
    return [
        {
            "name": "detector training with mosaics",
            "ours": mine,
            "theirs": ready,
            "unit": "images/s",
            "ratio": mine / ready,
            "bar": 0.95,
            "note": note,
        },
        {
            "name": "photographs with objects, read and augmented",
            "ours": photographs,
            "theirs": REACHED,
            "unit": "images/s",
            "ratio": photographs / REACHED,
            "bar": 1.0,
            "note": other,
        },
    ]
