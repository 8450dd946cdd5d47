"""Images from JPEG files to the network: how much of the speed on ready tensors is left.

ours      320 photographs of 320×240, decoded, brought to 224×224, augmented ("photographs") and standardized by one
          worker while a step trains on the batch before
theirs    the same steps on one batch that is always the same

A ResNet-18, batch 16, SGD. The ratio is images a second with files / images a second without: 1 means that decoding
hides behind training.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.turns import take_turns

SIDE, BATCH, CLASSES, EACH = 224, 16, 4, 80


def photographs(root: Path) -> None:
    """Scenes as JPEG files, a folder for each shape."""
    from PIL import Image

    from descend.data.images.pixels import to_pixels
    from descend.data.toys.scenes import COLOURS, SHAPES, one_object

    for shape in SHAPES[:CLASSES]:
        found = one_object(EACH, 320, torch.Generator().manual_seed(0), [(shape, colour) for colour in COLOURS])
        (root / shape).mkdir()
        for i, x in enumerate(found.x):
            Image.fromarray(to_pixels(x)[:240]).save(root / shape / f"{i:03d}.jpg", quality=90)


def network() -> torch.nn.Module:
    from descend.models.resnet import ResNet, ResNetConfig
    from descend.weights.labels import Labels

    torch.manual_seed(0)
    labels = Labels(tuple(map(str, range(CLASSES))))
    return ResNet(ResNetConfig(widths=(64, 128, 256, 512), depths=(2, 2, 2, 2), block="basic", labels=labels))


def steps(next_batch: Callable[[], dict[str, torch.Tensor]]) -> Callable[[], object]:
    """A training step on what comes next."""
    model = network().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step() -> float:
        batch = next_batch()
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(batch["x"]), batch["y"])
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def ours() -> Callable[[], object]:
    from descend.data.images.labelled import Preprocessing
    from descend.data.images.source import ImageSource
    from descend.data.images.stream import shuffle_images

    folder = tempfile.TemporaryDirectory()
    photographs(Path(folder.name))
    data = ImageSource(folder.name, size=SIDE, augment="photographs", memory=0.0, workers=1)
    splits = data.read()
    stream = shuffle_images(splits.train, Preprocessing.fit(splits), data.changes(), BATCH, 0, (0, 1), data.workers)

    def following(keep: Any = folder) -> dict[str, torch.Tensor]:  # the folder lives as long as the stream
        return next(stream)

    return steps(following)


def theirs() -> Callable[[], object]:
    random = torch.Generator().manual_seed(0)
    batch = {"x": torch.randn(BATCH, 3, SIDE, SIDE, generator=random), "y": torch.arange(BATCH) % CLASSES}
    return steps(lambda: batch)


def measure() -> list[dict[str, object]]:
    """Images a second with and without the files."""
    names = {name: f"benchmarks.image_pipeline:{name}" for name in ("ours", "theirs")}
    times, _ = take_turns(names, rounds=4, calls=4)
    typical = {name: sorted(found)[len(found) // 2] for name, found in times.items()}  # ahead now and then is no speed
    mine, ready = (BATCH / typical[name] for name in ("ours", "theirs"))
    note = f"ResNet-18, {SIDE}×{SIDE}, batch {BATCH}, one worker; theirs: a tensor that is there"
    return [
        {
            "name": "ResNet-18 training from JPEG files",
            "ours": mine,
            "theirs": ready,
            "unit": "images/s",
            "ratio": mine / ready,
            "bar": 0.95,
            "note": note,
        }
    ]
