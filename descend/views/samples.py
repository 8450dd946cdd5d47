"""What a generator of images shows: new images, and the training images that are nearest to them.

A generator that has memorised its data gives samples whose nearest training image is the sample itself:

    d(x) = min_i ‖x − x_i‖        over training images x_i in 0..1; beside it the median d of validation images
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from descend.contracts import Exhibit, Generates, Wish
from descend.data.images.labelled import Images, Preprocessing, Splits
from descend.sampling.chance import PerExample
from descend.views.pixels import channels_last

DRAWN, COMPARED, SEARCHED = 64, 8, 4000  # samples that are drawn and compared, training images that are searched
SEED = 0


def show_samples(model: Generates, prepare: Preprocessing, device: torch.device) -> Exhibit:
    """New images, by class where the model takes one."""
    classes, captions = None, [""] * DRAWN
    if "classes" in model.offers:
        classes = (torch.arange(DRAWN) % len(prepare.labels)).to(device)
        captions = [prepare.labels[int(k)] for k in classes]
    x = model.generate(PerExample(SEED, DRAWN, device=device), Wish(classes=classes))
    content = {"images": channels_last(prepare.restore(x.cpu())), "captions": captions}
    return Exhibit("images", "Samples", content, f"Drawn with seed {SEED}: descend sample RUN -n {DRAWN}")


def show_progress(kept: Mapping[int, Tensor]) -> Exhibit:
    """Step -> the samples of that step: from the first to the last that were kept."""
    content = {"rows": channels_last(torch.stack(list(kept.values()))), "captions": [f"step {n:,}" for n in kept]}
    return Exhibit("sheet", "Samples over training", content, "The same random numbers at every step.")


def show_nearest(model: Generates, splits: Splits, prepare: Preprocessing, device: torch.device) -> Exhibit:
    """Samples beside the training images nearest to them: is anything new here?"""
    x = prepare.restore(model.generate(PerExample(SEED, COMPARED, device=device), Wish()).cpu())
    train = first_images(splits.train, SEARCHED)
    distance, nearest = find_nearest(x, train)
    usual = find_nearest(first_images(splits.valid, 100), train)[0].median()
    images = torch.stack([x, train[nearest]], dim=1).flatten(0, 1)
    captions = [
        text for d, i in zip(distance, nearest, strict=True) for text in ("sample", f"training image {int(i)}: {d:.2f}")
    ]
    note = (
        f"Distances in pixel values 0..1, among {len(train):,} training images; for validation images the median is "
        f"{usual:.2f}. A sample much nearer than that is a copy."
    )
    content = {"images": channels_last(images), "captions": captions}
    return Exhibit("images", "Samples and their nearest training images", content, note)


def first_images(images: Images, most: int) -> Tensor:
    """The first images of a part, as pixels in 0..1."""
    x: Tensor = images.x[torch.arange(min(most, len(images.y)))]
    return x


def find_nearest(x: Tensor, among: Tensor) -> tuple[Tensor, Tensor]:
    """For each image its distance to the nearest of the others, and which that is."""
    found = torch.cdist(x.flatten(1), among.flatten(1)).min(dim=1)
    return found.values, found.indices
