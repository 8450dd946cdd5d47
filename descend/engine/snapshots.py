"""What a generator makes at every evaluation: samples/step-N.png in the folder of the run, images side by side.

The samples of all steps are made of the same random numbers, so that one sees the same images become clear.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from descend.data.images.pixels import to_pixels, to_tensor
from descend.files import write_bytes
from descend.weights.checkpoints import step_name, step_of

FOLDER, COUNT = "samples", "count"  # of the files, and in a file: how many images it holds


def keep_images(run: Path, step: int, images: Tensor) -> None:
    """Write images (n, c, h, w) in 0..1 as one file."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    page, told = io.BytesIO(), PngInfo()
    told.add_text(COUNT, str(len(images)))
    Image.fromarray(to_pixels(torch.cat(list(images), dim=2))).save(page, "PNG", pnginfo=told)
    (run / FOLDER).mkdir(exist_ok=True)
    write_bytes(run / FOLDER / f"{step_name(step)}.png", page.getvalue())


def list_images(run: Path) -> list[tuple[int, Path]]:
    """The steps that have images, in order, and their files."""
    found = (run / FOLDER).glob("step-*.png") if (run / FOLDER).is_dir() else ()
    steps = ((step_of(path.stem), path) for path in found)
    return sorted((step, path) for step, path in steps if step is not None)


def read_images(path: Path) -> Tensor:
    """The images (n, c, h, w) of a file that `keep_images` wrote."""
    from PIL import Image

    with Image.open(path, formats=("PNG",)) as image:
        count = int(image.info.get(COUNT, 1))
        x = to_tensor(np.asarray(image))
    return x.unflatten(2, (count, -1)).movedim(2, 0)


def read_film(run: Path, most: int = 8) -> dict[int, Tensor]:
    """Step -> its images, for at most so many steps from the first to the last."""
    found = list_images(run)
    chosen = sorted({round(i * (len(found) - 1) / (most - 1)) for i in range(most)}) if found else []
    return {step: read_images(path) for step, path in (found[i] for i in chosen)}


def forget_after(run: Path, step: int) -> None:
    """Remove the images of steps that will be taken again."""
    for at, path in list_images(run):
        if at > step:
            path.unlink()
