"""Stand-ins for the public sets of labelled images: the same shapes, classes and files, nothing to download.

    MNIST       28 × 28, grey, 10 digits               scikit-learn's handwritten digits, enlarged to 20 × 20
    CIFAR-10    3 × 32 × 32, 10 classes                generated scenes: a shape, red to yellow or green to blue
    ImageNet    3 × 224 × 224, 1,000 classes           generated scenes of two objects: shape and colour of both

A source without a path gives the images; `write` puts them into the files of the real set, so that what reads the real
one reads them too: IDX, binary batches, a folder for each class (train/n00000001/..).

Systems: vision-datasets
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate, pad

from descend.data.images.idx import write_idx
from descend.data.images.labelled import Images, Splits, split_by_class
from descend.data.images.lazy import Bytes
from descend.data.images.source import ImageSource
from descend.data.streams.arrays import generator
from descend.data.toys.scenes import COLOURS, SHAPES, draw_scenes
from descend.ranges import Count

WARM, COLD = ("red", "yellow", "orange", "purple"), ("green", "blue", "cyan", "white")
TEN = SHAPES[:5]  # shapes, each warm and cold: ten classes
THOUSAND = 1000


@dataclass(frozen=True)
class MnistLike(ImageSource):
    """Handwritten digits in MNIST's shape; with a path, MNIST itself."""

    def load_embedded(self) -> Splits:
        x, y = draw_mnist()
        return split_images(x, y, self.valid, self.test, tuple(map(str, range(10))))

    @property
    def source(self) -> str:
        return self.path or "scikit-learn's digits at 28×28"


@dataclass(frozen=True)
class CifarLike(ImageSource):
    """Scenes in CIFAR-10's shape; with a path, CIFAR-10 itself."""

    count: Count = 2000
    """Generated scenes."""

    def load_embedded(self) -> Splits:
        x, y = draw_cifar(self.count)
        return split_images(x, y, self.valid, self.test, name_ten())

    @property
    def source(self) -> str:
        return self.path or "generated scenes in CIFAR-10's shape"


@dataclass(frozen=True)
class ImagenetLike(ImageSource):
    """Scenes in the shape of ImageNet's 1,000 classes; with a path, a folder in ImageNet's layout."""

    each: Count = 3
    """Generated scenes of each class; at least 3, one for each part."""

    def load_embedded(self) -> Splits:
        y = torch.arange(THOUSAND).repeat_interleave(max(3, self.each))
        x = draw_imagenet(y, self.size or 224)
        return split_images(x, y, max(self.valid, 1 / 3), max(self.test, 1 / 3), name_thousand())

    @property
    def source(self) -> str:
        return self.path or "generated scenes of 1,000 classes"


def split_images(x: Tensor, y: Tensor, valid: float, test: float, labels: tuple[str, ...]) -> Splits:
    """The three parts of 8-bit images (n, c, h, w)."""
    images = Images(Bytes(x), y, torch.arange(len(y)))
    held, chosen, rest = split_by_class(y, (test, valid))
    return Splits(images.take(rest), images.take(chosen), images.take(held), labels)


def draw_mnist() -> tuple[Tensor, Tensor]:
    """1,797 digits (n, 1, 28, 28), 8-bit, and their classes."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    x = torch.from_numpy(digits.images).float()[:, None] / 16
    glyph = interpolate(x, (20, 20), mode="bicubic", align_corners=False).clamp(0, 1)
    return (255 * pad(glyph, (4, 4, 4, 4))).round().to(torch.uint8), torch.from_numpy(digits.target).long()


def draw_cifar(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """n scenes (n, 3, 32, 32), 8-bit, and their classes: 2 · shape + cold."""
    random = generator(seed, 10)
    y = torch.arange(n) % 10
    palette = torch.tensor([[COLOURS.index(name) for name in names] for names in (WARM, COLD)])
    colour = palette[y % 2, torch.randint(4, (n,), generator=random)]
    return draw(y[:, None] // 2, colour[:, None], 32, random), y


def draw_imagenet(y: Tensor, side: int = 224, seed: int = 0) -> Tensor:
    """Scenes of these classes (n, 3, side, side), 8-bit: two objects, the class is shape and colour of both."""
    pairs = len(SHAPES) * len(COLOURS)
    first, second = y // pairs % pairs, y % pairs  # 48 · 48 ≥ 1,000
    both = torch.stack([first, second], dim=1)
    return draw(both // len(COLOURS), both % len(COLOURS), side, generator(seed, THOUSAND))


def draw(shape: Tensor, colour: Tensor, side: int, random: torch.Generator) -> Tensor:
    """8-bit scenes of these objects, all upright (n, 3, side, side)."""
    found = draw_scenes(shape, colour, torch.ones_like(shape, dtype=torch.bool), side, random, tilt=0.3)
    return (255 * found.x).round().to(torch.uint8)


def name_ten() -> tuple[str, ...]:
    return tuple(f"{kind} {shape}" for shape in TEN for kind in ("warm", "cold"))


def name_thousand() -> tuple[str, ...]:
    """n00000000 .., as ImageNet's folders are called."""
    return tuple(f"n{k:08d}" for k in range(THOUSAND))


def write_mnist(folder: Path) -> None:
    """The four IDX files; every sixth digit is for the test."""
    x, y = draw_mnist()
    held = torch.arange(len(y)) % 6 == 5
    for name, rows in (("train", ~held), ("t10k", held)):
        write_idx(folder / f"{name}-images-idx3-ubyte", x[rows, 0].numpy())
        write_idx(folder / f"{name}-labels-idx1-ubyte", y[rows].numpy().astype(np.uint8))


def write_cifar(folder: Path, each: int = 100) -> None:
    """Five training batches, the test batch, and the names of the classes."""
    x, y = draw_cifar(6 * each)
    records = torch.cat([y[:, None].to(torch.uint8), x.flatten(1)], dim=1)
    for name, part in zip([*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"], records.split(each), strict=True):
        (folder / f"{name}.bin").write_bytes(part.numpy().tobytes())
    (folder / "batches.meta.txt").write_text("".join(f"{name}\n" for name in name_ten()))


def write_imagenet(folder: Path, classes: int = THOUSAND, each: int = 1, side: int = 224) -> None:
    """train/n00000000/n00000000_0.JPEG .. and val/ in the same way."""
    from PIL import Image

    for part, seed in (("train", 0), ("val", 1)):
        y = torch.arange(classes).repeat_interleave(each)
        for k, (image, label) in enumerate(zip(draw_imagenet(y, side, seed), y.tolist(), strict=True)):
            name = name_thousand()[label]
            path = folder / part / name / f"{name}_{k % each}.JPEG"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image.movedim(0, 2).numpy()).save(path, format="JPEG", quality=92)
