"""Images as pages send them: data URLs."""

from __future__ import annotations

import base64
import binascii
from io import BytesIO

import torch
from torch import Tensor

from descend.errors import Mistake


def decode_image(image: str, channels: int) -> Tensor:
    """A data URL as pixels (1, c, h, w) in 0..1."""
    from PIL import Image, UnidentifiedImageError

    try:
        data = base64.b64decode(image.partition(",")[2], validate=True)
        picture = Image.open(BytesIO(data)).convert("RGB")
    except (binascii.Error, ValueError, UnidentifiedImageError, OSError):
        raise Mistake("this is no image that can be read") from None
    pixels = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8)
    pixels = pixels.view(picture.height, picture.width, 3).permute(2, 0, 1)[None].float() / 255
    return pixels if channels == 3 else pixels.mean(1, keepdim=True)
