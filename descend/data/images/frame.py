"""How an image of any size becomes an image of the model's size.

    edges ()        stretched to h × w, whatever the proportions were
    edges (s)       the shorter edge becomes s, then the middle h × w is cut out
    edges (H, W)    stretched to H × W, then the middle h × w is cut out

The two forms below, of tensors and of Pillow's images, are the same but for Pillow's rounding to 8 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn.functional import interpolate

from descend.errors import Mistake

if TYPE_CHECKING:
    from PIL import Image

BILINEAR, BICUBIC = 2, 3  # Pillow's numbers
FILTERS = {BILINEAR: "bilinear", BICUBIC: "bicubic"}


@dataclass(frozen=True)
class Frame:
    """The size an image is resized to, and how."""

    height: int
    width: int
    edges: tuple[int, ...] = ()
    """What the image becomes before the middle is cut out: nothing, its shorter edge, or its height and width."""
    resample: int = BILINEAR
    """Pillow's number of the interpolation: 2 bilinear, 3 bicubic (0 and 1, nearest and Lanczos, for files only)."""

    def __post_init__(self) -> None:
        if min(self.height, self.width) < 1:
            raise Mistake(f"images of {self.height}×{self.width}: both sides need at least 1 pixel")
        if len(self.edges) > 2:
            raise ValueError(f"edges {self.edges}: none, the shorter one, or two")
        if self.edges and (self.edges[0] < self.height or self.edges[-1] < self.width):
            told = "×".join(map(str, self.edges))
            raise Mistake(f"edges of {told} are too small for an image of {self.height}×{self.width}")

    def scaled_size(self, height: int, width: int) -> tuple[int, int]:
        """The size of an image of height × width before the middle is cut out."""
        if len(self.edges) != 1:
            return (self.edges[0], self.edges[1]) if self.edges else (self.height, self.width)
        [shorter] = self.edges
        short, long = sorted((height, width))
        longer = int(shorter * long / short)
        return (shorter, longer) if height <= width else (longer, shorter)

    def corner(self, height: int, width: int) -> tuple[int, int]:
        """Row and column where the middle of a scaled image begins."""
        return (height - self.height) // 2, (width - self.width) // 2

    def of_tensors(self, x: Tensor) -> Tensor:
        """Images (n, c, any, any) in 0..1 -> (n, c, h, w)"""
        if self.resample not in FILTERS:
            raise Mistake(f"resample {self.resample}: tensors are resized with 2 (bilinear) or 3 (bicubic)")
        size = self.scaled_size(*x.shape[-2:])
        if x.shape[-2:] != size:
            x = interpolate(x, size=size, mode=FILTERS[self.resample], antialias=True).clamp(0, 1)
        top, left = self.corner(*size)
        return x[..., top : top + self.height, left : left + self.width]

    def of_image(self, image: Image.Image) -> Image.Image:
        """One of Pillow's images, resized to h × w."""
        height, width = self.scaled_size(image.height, image.width)
        if image.size != (width, height):
            from PIL import Image  # here, since most runs read no file

            image = image.resize((width, height), Image.Resampling(self.resample))
        top, left = self.corner(height, width)
        return image.crop((left, top, left + self.width, top + self.height))
