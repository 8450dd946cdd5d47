"""Image files: listed, opened with limits, turned upright, and decoded to 8-bit grey or colour.

    upright      as the camera's EXIF note says
    palette      its colours                         alpha       laid over white
    16 bits      v / 257, rounded                    CMYK, YCbCr, Lab   Pillow's conversion to red, green, blue

A file that cannot be opened, ends too early, is not an image or has too many pixels is a mistake that names it. Only
the formats below are ever opened. A large JPEG is decoded at 1/2, 1/4 or 1/8 of its size, but never below twice what is
needed, and brought to size from there.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from descend.data.images.frame import Frame
from descend.data.reading import check_file, list_files, show
from descend.errors import Mistake

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
SUFFIXES = {".jpg", ".jpeg", ".jfif", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm"}
MOST_PIXELS = 64_000_000
GREY = ("1", "L", "LA", "La", "I", "F")


def list_image_files(folder: str | Path) -> tuple[list[Path], list[Path]]:
    """All image files below a folder, by name, and the other files; hidden ones are in neither.

    A link to nowhere, a pipe or a folder with the name of an image is a mistake that names it.
    """
    root = Path(folder)
    found = [p for p in list_files(root, SUFFIXES) if p.name not in ("Thumbs.db", "desktop.ini")]
    images = [p for p in found if p.suffix.lower() in SUFFIXES]
    return images, [p for p in found if p.suffix.lower() not in SUFFIXES]


@contextmanager
def open_image(path: str | Path, data: bytes | None = None) -> Iterator[Image.Image]:
    """Pillow's image of a file (or of its bytes); whatever goes wrong in it is a Mistake that names the file."""
    from PIL import Image  # here, since most runs read no file

    if data is None:
        check_file(path)
    try:
        with Image.open(path if data is None else io.BytesIO(data), formats=FORMATS) as image:
            pixels = image.width * image.height
            if pixels > MOST_PIXELS:
                raise Mistake(f"{show(path)} has {pixels:,} pixels, more than {MOST_PIXELS:,}; make it smaller")
            yield image
    except Mistake:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise Mistake(f"{show(path)} has more pixels than Pillow opens; make it smaller") from None
    except Exception as error:  # a damaged file can raise anything inside a decoder
        raise Mistake(
            f"{show(path)} cannot be read as an image ({_describe_error(path, error)}); replace or remove it"
        ) from None


def _describe_error(path: str | Path, error: Exception) -> str:
    try:
        if not os.path.getsize(path):
            return "the file is empty"
    except OSError:
        pass
    text = " ".join(str(error).split()) or type(error).__name__
    return "not an image, or one of another format" if text.startswith("cannot identify") else text


def upright(image: Image.Image) -> Image.Image:
    """Turned as its EXIF orientation says."""
    from PIL import ImageOps

    return ImageOps.exif_transpose(image)


def is_grey(image: Image.Image) -> bool:
    """Whether the file has no colours."""
    return image.mode in GREY or image.mode.startswith("I;16")


def plain(image: Image.Image, channels: int) -> Image.Image:
    """8 bits, grey (1 channel) or red, green, blue (3)."""
    from PIL import Image

    if image.mode.startswith("I;16") or image.mode in ("I", "F"):
        image = Image.fromarray(_eight_bits(np.asarray(image)))
    elif image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        layer = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    elif image.mode == "P":
        image = image.convert("RGB")
    return image.convert("L" if channels == 1 else "RGB")


def _eight_bits(values: np.ndarray) -> np.ndarray:
    """16-bit numbers, or floats in 0..1, as 8 bits."""
    low, high = values.min(), values.max()
    if values.dtype.kind == "f" and not (low >= 0 and high <= 1):
        raise ValueError(f"floats from {low:.3g} to {high:.3g}, not 0..1")
    if low < 0 or high > 65535:
        raise ValueError(f"values from {low} to {high}, more than 16 bits")
    scaled = values * 255.0 if values.dtype.kind == "f" else values / 257.0
    return np.rint(scaled).astype(np.uint8)


def decode(path: str | Path, channels: int = 3, frame: Frame | None = None, least: int = 0) -> np.ndarray:
    """8-bit pixels (h, w) of 1 channel or (h, w, 3), resized to the frame if there is one. With `least`, a JPEG whose
    sides are more than twice that may come at 1/2, 1/4 or 1/8 of its size."""
    if channels not in (1, 3):
        raise Mistake(f"{channels} channels: an image has 1 (grey) or 3 (red, green, blue)")
    with open_image(path) as image:
        if frame is not None:
            need = 2 * max(frame.height, frame.width, *frame.edges)
            image.draft(None, (need, need))  # only JPEG can; another format is left as it is
        elif least:
            image.draft(None, (2 * least, 2 * least))
        result = plain(upright(image), channels)
        return np.asarray(result if frame is None else frame.of_image(result))


def class_numbers(path: str | Path) -> np.ndarray:
    """A mask file as whole numbers (h, w): the values of a grey image, or the palette's indices."""
    with open_image(path) as image:
        if not (image.mode in ("P", "L", "1", "I") or image.mode.startswith("I;16")):
            raise Mistake(
                f"{show(path)} is an image of mode {image.mode}; a mask holds class numbers: grey or palette PNG"
            )
        return np.asarray(upright(image)).astype(np.int64)


def decode_all(paths: Iterable[str | Path], channels: int, frame: Frame, workers: int = 1) -> Tensor:
    """Files as 8-bit images (n, channels, h, w), in their order; `workers` threads decode (Pillow frees the lock)."""
    files = list(paths)
    x = np.empty((len(files), channels, frame.height, frame.width), np.uint8)

    def fill(i: int) -> None:
        pixels = decode(files[i], channels, frame)
        x[i] = pixels if channels == 1 else pixels.transpose(2, 0, 1)

    if workers > 1 and len(files) > 1:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(fill, range(len(files))))
    else:
        for i in range(len(files)):
            fill(i)
    return torch.from_numpy(x)


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def bombs_are_errors() -> Iterator[None]:
    """Inside, Pillow's warning about an image with very many pixels stops that image from being opened."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield
