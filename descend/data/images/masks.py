"""Images with masks, the class of every pixel: generated scenes, or the user's own folder.

    FOLDER/images/a.jpg ..     FOLDER/masks/a.png ..     FOLDER/classes.txt (one name per line, class 0 first; optional)

A mask is a grey or palette PNG of class numbers, as large as its image, under the same name. 255 is no class: such
pixels do not count. Masks of black and white only are two classes. All files are read and checked before training;
pixels stay 8-bit in memory. The cut into train, valid and test does not depend on the run's seed; equal images of a
folder go to the same part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import grid_sample, interpolate

from descend.data.images.facts import digest_images
from descend.data.images.files import class_numbers, decode, is_grey, list_image_files, open_image
from descend.data.images.labelled import check_shares
from descend.data.images.warp import Warp
from descend.data.reading import is_folder, read_text, show
from descend.data.streams.arrays import InOrder, Shuffled, generator
from descend.data.streams.splits import describe_leaks, keep_together
from descend.data.toys.scenes import SHAPES, scenes
from descend.errors import Mistake
from descend.ranges import Count, Fraction, Range, SideOrAny

VOID = 255  # no class: the pixel does not count
LOSSY = (".jpg", ".jpeg", ".jfif", ".webp")


@dataclass(frozen=True)
class Masked:
    """8-bit images x (n, c, h, w), their masks y (n, h, w), and each one's record in the source it came from."""

    x: Tensor
    y: Tensor
    ids: Tensor

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: Tensor) -> Masked:
        return Masked(self.x[rows], self.y[rows], self.ids[rows])

    def arrays(self) -> dict[str, Tensor]:
        return {"x": self.x, "y": self.y, "ids": self.ids}


@dataclass(frozen=True)
class MaskedSplits:
    """The three parts, the names of the classes, and what each record is called."""

    train: Masked
    valid: Masked
    test: Masked
    labels: tuple[str, ...]
    names: tuple[str, ...]
    facts: dict[str, str] = field(default_factory=dict)
    """Leaks between the parts, as a run says it."""


@dataclass(frozen=True)
class Masks:
    """Which images and masks, and how they are prepared."""

    path: str = ""
    """Folder with images/ and masks/; empty: generated scenes."""
    size: SideOrAny = 0
    """Side in pixels that a folder's images are resized to; 0: as they are, all of one size."""
    scenes: Count = 3000
    """How many scenes are generated."""
    side: Annotated[int, Range(int, least=8, most=4096)] = 64
    """Side of a generated scene in pixels."""
    valid: Fraction = 0.15
    """Share of the images that selects the checkpoint."""
    test: Fraction = 0.15
    """Share held out for the final test."""
    warp: Warp = field(default_factory=Warp)

    def read(self) -> MaskedSplits:
        """The three parts."""
        check_shares(self.valid, self.test)
        if self.path:
            images, labels, names = folder(self.path, self.size)
        else:
            images, labels = generate_masks(self.scenes, self.side), ("background", *SHAPES)
            names = tuple(f"scene {i}" for i in range(len(images)))
        n = len(images)
        test, valid = (max(1, round(share * n)) for share in (self.test, self.valid))
        if test + valid >= n:
            raise Mistake(f"{n} images with masks are too few for three parts; give at least 3, better 30")
        order = torch.randperm(n, generator=generator(0)).split([test, valid, n - test - valid])
        rows = [part.sort().values for part in order]
        digests = digest_images(images.x)
        together = keep_together(digests, rows) if self.path else rows
        rows = together if all(map(len, together)) else rows
        parts = [images.take(part) for part in rows]
        facts = describe_leaks(digests, dict(zip(("test", "valid", "train"), rows, strict=True)))
        return MaskedSplits(parts[2], parts[1], parts[0], labels, names, facts)


@lru_cache(maxsize=2)
def generate_masks(n: int, side: int) -> Masked:
    """n scenes, always the same ones."""
    if n < 3:
        raise Mistake(f"--data.scenes {n}: give at least 3, one for each part")
    found = scenes(n, side, generator(0, side))
    return Masked((found.x * 255).round().to(torch.uint8), found.mask.to(torch.uint8), torch.arange(n))


def read_unseen_masks(path: str, size: int, image: tuple[int, int, int], known: tuple[str, ...]) -> Masked:
    """All pairs of a folder as a trained model sees them: its channels, its size, its classes."""
    channels, height, width = image
    images, labels, _ = folder(path, size, channels, known)
    if labels != known:
        named = f"{Path(path) / 'classes.txt'} names {', '.join(labels)}"
        raise Mistake(f"{named}, but the model knows {', '.join(known)}; give the same classes in the same order")
    if images.x.shape[2:] != (height, width):
        found = "×".join(map(str, images.x.shape[2:]))
        raise Mistake(f"the images of {path} are {found}, but the model was trained on {height}×{width}; resize them")
    return images


def folder(
    path: str | Path, size: int = 0, channels: int = 0, known: tuple[str, ...] = ()
) -> tuple[Masked, tuple[str, ...], tuple[str, ...]]:
    """All pairs of a folder, the names of the classes and of the pairs; `channels` and the classes that are `known` are
    those of a trained model, or found here."""
    root = Path(path)
    pairs = pair_files(root)
    channels = channels or (1 if all(grey(image) for image, _ in pairs) else 3)
    masks = [class_numbers(mask) for _, mask in pairs]
    masks, labels = name_classes(masks, [mask for _, mask in pairs], root / "classes.txt", known)
    x, y = [], []
    for (image, file), mask in zip(pairs, masks, strict=True):
        pixels = decode(image, channels)
        if pixels.shape[:2] != mask.shape:
            raise Mistake(
                f"{file} is {show_pixels(mask)}, but its image {image} is {show_pixels(pixels)}; "
                "a mask has the size of its image"
            )
        pixels = pixels[..., None] if channels == 1 else pixels
        x.append(torch.from_numpy(pixels.transpose(2, 0, 1).copy()))
        y.append(torch.from_numpy(mask.astype(np.uint8)))
        if size:
            x[-1], y[-1] = brought(x[-1], y[-1], size)
        elif x[-1].shape != x[0].shape:
            raise Mistake(
                f"{image} is {show_pixels(pixels)}, but {pairs[0][0]} is {'×'.join(map(str, x[0].shape[1:]))}; "
                f"give --data.size 128 (or another side) to bring all to one size"
            )
    names = tuple(show(image.stem) for image, _ in pairs)
    return Masked(torch.stack(x), torch.stack(y), torch.arange(len(x))), labels, names


def pair_files(root: Path) -> list[tuple[Path, Path]]:
    """Every image with its mask, by name."""
    if not is_folder(root):
        raise Mistake(f"--data.path {root} is not a folder; give the folder that holds images/ and masks/")
    found: list[dict[str, Path]] = []
    for part in ("images", "masks"):
        if not (root / part).is_dir():
            raise Mistake(f"--data.path {root} has no folder {part}/; images/ and masks/ hold files of the same names")
        files, _ = list_image_files(root / part)
        by_stem: dict[str, Path] = {}
        for path in files:
            stem = show(path.relative_to(root / part).with_suffix(""))
            if stem in by_stem:
                raise Mistake(f"{path} and {by_stem[stem]} have the same name; keep one of them")
            by_stem[stem] = path
        found.append(by_stem)
    images, masks = found
    if not images:
        raise Mistake(f"{root / 'images'} holds no image; put the images there")
    for one, other, missing in ((images, masks, "mask"), (masks, images, "image")):
        alone = [one[stem] for stem in one if stem not in other]
        if alone:
            more = f" (and {len(alone) - 1} more)" if alone[1:] else ""
            raise Mistake(f"{alone[0]}{more} has no {missing} of the same name; add it, or remove the file")
    for file in masks.values():
        if file.suffix.lower() in LOSSY:
            raise Mistake(f"{file}: {file.suffix} is a lossy format; class numbers need PNG")
    return [(images[stem], masks[stem]) for stem in sorted(images)]


def name_classes(
    masks: list[np.ndarray], files: list[Path], path: Path, known: tuple[str, ...] = ()
) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """The masks with checked class numbers, and the names of the classes: from classes.txt, those that a model
    knows, or the numbers found."""
    values = [np.unique(mask) for mask in masks]
    used = np.unique(np.concatenate(values))
    if set(used.tolist()) == {0, VOID}:  # black and white
        masks, values, used = [mask // VOID for mask in masks], [v // VOID for v in values], used // VOID
    if path.exists() or path.is_symlink():
        labels = tuple(line.strip() for line in read_text(path).split("\n") if line.strip())
        if not 2 <= len(labels) <= VOID:
            raise Mistake(f"{path} names {len(labels)} classes; give 2 to {VOID}, one per line, class 0 first")
        fix = f"{path.name} names {len(labels)} classes, 0 to {len(labels) - 1}; add a line there"
    elif known:
        labels, fix = known, f"the model knows 0 to {len(known) - 1} ({', '.join(known)}); correct it"
    else:
        numbers = [v for v in used.tolist() if v != VOID]
        labels = tuple(map(str, range(len(numbers))))
        fix = f"the masks use {len(numbers)} numbers, so they should be 0 to {len(numbers) - 1}; write {path.name}"
    for file, mask, found in zip(files, masks, values, strict=True):
        wrong = [v for v in found.tolist() if v != VOID and not 0 <= v < len(labels)]
        if wrong:
            row, column = np.argwhere(mask == wrong[0])[0]
            raise Mistake(
                f"{file} has class {wrong[0]} at row {row}, column {column}, but {fix}, or use {VOID} for no class"
            )
    if len(labels) < 2:
        raise Mistake(f"{files[0].parent}: all masks hold a single class; there is nothing to learn")
    return masks, labels


def grey(path: Path) -> bool:
    with open_image(path) as image:
        return is_grey(image)


def show_pixels(pixels: np.ndarray) -> str:
    return "×".join(map(str, pixels.shape[:2]))


def brought(x: Tensor, y: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """An image (c, h, w) and its mask (h, w), side × side: the image smoothly, the mask by the nearest pixel."""
    size = (side, side)
    image = interpolate(x[None].float(), size, mode="bilinear", antialias=True).round().clamp(0, 255)
    return image[0].to(torch.uint8), interpolate(y[None, None].float(), size, mode="nearest-exact")[0, 0].to(y.dtype)


def warp_both(x: Tensor, y: Tensor, warp: Warp, u: Tensor) -> tuple[Tensor, Tensor]:
    """Images (b, c, h, w) and masks (b, h, w) warped alike by u (b, 4); what comes in from outside is no class."""
    at = warp.grid(x, u)
    mask = grid_sample(y[:, None].to(x.dtype) + 1, at, mode="nearest", align_corners=False)[:, 0]
    return grid_sample(x, at, align_corners=False), torch.where(mask > 0, mask - 1, VOID).to(y.dtype)


class TrainingMasks:
    """A stream of prepared images and masks, warped if the data says so; `prepare` takes pixels in 0..1."""

    def __init__(self, source: Shuffled, prepare: Callable[[Tensor], Tensor], warp: Warp):
        self.source, self.prepare, self.warp = source, prepare, warp

    def __next__(self) -> dict[str, Tensor]:
        batch = next(self.source)
        x, y, u = batch["x"].float() / 255, batch["y"], batch.pop("u", None)
        if u is not None:
            x, y = warp_both(x, y, self.warp, u)
        return {**batch, "x": self.prepare(x), "y": y}

    def state_dict(self) -> dict[str, Any]:
        return self.source.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.source.load_state_dict(state)


class MasksInOrder:
    """Prepared images and masks in order, as often as asked; a batch has about `pixels` pixels."""

    def __init__(self, images: Masked, prepare: Callable[[Tensor], Tensor], pixels: int = 2**18):
        self.source = InOrder(images.arrays(), max(1, pixels // images.y[0].numel()))
        self.prepare = prepare

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        for batch in self.source:
            yield {**batch, "x": self.prepare(batch["x"].float() / 255)}

    def __len__(self) -> int:
        return len(self.source)
