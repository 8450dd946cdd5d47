"""Images as tensors: channels × height × width, 8-bit values brought to 0..1.

    x = pixel / 255        grey: 1 × h × w        colour: 3 × h × w        centred: x_c − μ_c, μ of the training images

An image file has its channels last (h, w, 3), a network wants them first. MF calls an image ℝ^{H×W×C}, DLN C × H × W.

Systems: image-tensors
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from descend.data.images.files import decode
from descend.data.tables.scaling import Part, only_training
from descend.errors import Mistake


def to_tensor(pixels: np.ndarray) -> Tensor:
    """8-bit pixels (h, w) or (h, w, c) -> floats (c, h, w) in 0..1."""
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3):
        raise Mistake(f"pixels of {pixels.dtype} and shape {pixels.shape}: give 8-bit values (h, w) or (h, w, c)")
    last = pixels[..., None] if pixels.ndim == 2 else pixels
    return torch.from_numpy(last.transpose(2, 0, 1).copy()).float() / 255


def to_pixels(x: Tensor) -> np.ndarray:
    """Floats (c, h, w) in 0..1 -> 8-bit pixels (h, w, c), or (h, w) for one channel."""
    whole: np.ndarray = (x.clamp(0, 1) * 255).round().to(torch.uint8).movedim(0, -1).numpy()
    return whole[..., 0] if whole.shape[-1] == 1 else whole


def read_image(path: str | Path, channels: int = 3) -> Tensor:
    """An image file as (channels, h, w) in 0..1, upright; 1 channel makes it grey, 3 colours."""
    return to_tensor(decode(path, channels))


def mean_of_channels(x: Tensor, part: Part) -> Tensor:
    """μ_c (c, 1, 1) of the training images (n, c, h, w): what is subtracted from every image."""
    only_training(part, "the mean of the images")
    return x.mean(dim=(0, 2, 3))[:, None, None]
