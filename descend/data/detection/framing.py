"""How an image of any size becomes an input of a detector, and how boxes find the way back.

    Letterbox       s = min(S/h, S/w); the image, resized to ⌊h s⌋ × ⌊w s⌋, on a ground of S × S          (YOLO)
    Stretch         resized to H × W, whatever the proportions were                                        (RT-DETR)
    ShortestEdge    the shorter edge becomes 800, unless the longer one would pass 1333; then that one does  (DETR)

    box in the input = box · scale + (left, top)        back = scale x, scale y, left, top
    box in the image = (box − (left, top)) / scale, the part within the image

The scale is that of the resized image as it came out in whole pixels, so that the way back is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple, Protocol

import torch
from torch import Tensor

from descend.ranges import Range, Share

InputSide = Annotated[int, Range(int, least=1, most=16384)]


class Placed(NamedTuple):
    """Where n images come to lie."""

    sizes: Tensor
    """Height and width of the resized images (n, 2)."""
    corner: Tensor
    """Left and top (n, 2)."""
    ground: tuple[int, int]
    """Height and width of the input, which holds them all."""


class Framing(Protocol):
    """A way to bring images to size."""

    def place(self, sizes: Tensor) -> Placed:
        """Images of these heights and widths (n, 2)."""
        ...


@dataclass(frozen=True)
class Letterbox:
    """The whole image in a square, its proportions kept."""

    side: InputSide
    at: Share = 0.0
    """Where the image lies on the ground: 0 in the upper left corner, 0.5 in the middle."""

    def place(self, sizes: Tensor) -> Placed:
        scale = (self.side / sizes.double()).amin(dim=1, keepdim=True)
        scaled = (sizes * scale).long().clamp(1, self.side)
        corner = ((self.side - scaled.flip(1)) * self.at).long()
        return Placed(scaled, corner, (self.side, self.side))


@dataclass(frozen=True)
class Stretch:
    """Exactly this size."""

    height: InputSide
    width: InputSide

    def place(self, sizes: Tensor) -> Placed:
        scaled = sizes.new_tensor([self.height, self.width]).expand(len(sizes), 2)
        return Placed(scaled, torch.zeros_like(sizes), (self.height, self.width))


@dataclass(frozen=True)
class ShortestEdge:
    """As large as both limits allow, its proportions kept; the input is as large as the largest of its images."""

    shortest: InputSide = 800
    longest: InputSide = 1333
    multiple: InputSide = 1
    """Both sides are cut down to multiples of this (YOLOS: 16)."""

    def place(self, sizes: Tensor) -> Placed:
        short, long = sizes.double().aminmax(dim=1)
        exact = torch.minimum(torch.full_like(short, self.shortest), self.longest * short / long)
        edge = exact.round()  # half to even, as the published processor does
        other = (exact * long / short).long()
        scaled = torch.where(sizes == short[:, None], edge[:, None].long(), other[:, None])
        scaled = torch.where((short == edge)[:, None], sizes, scaled)
        scaled = (scaled // self.multiple * self.multiple).clamp_min(self.multiple)
        height, width = scaled.amax(dim=0).tolist()
        return Placed(scaled, torch.zeros_like(sizes), (height, width))


def find_back(placed: Placed, sizes: Tensor) -> Tensor:
    """scale x, scale y, left, top of images of these sizes (n, 4)."""
    scale = placed.sizes.double() / sizes
    return torch.cat([scale.flip(1), placed.corner.double()], dim=1).float()


def to_input(boxes: Tensor, back: Tensor) -> Tensor:
    """Boxes in pixels of the images (.., 4) -> in pixels of the input; `back` (.., 4) broadcasts."""
    scale, corner = back[..., :2], back[..., 2:]
    return boxes * torch.cat([scale, scale], dim=-1) + torch.cat([corner, corner], dim=-1)


def to_original(boxes: Tensor, back: Tensor, size: Tensor) -> Tensor:
    """Boxes of b inputs (b, m, 4) -> in pixels of the images, which have this height and width (b, 2)."""
    scale, corner = back[:, None, :2], back[:, None, 2:]
    found = (boxes - torch.cat([corner, corner], dim=-1)) / torch.cat([scale, scale], dim=-1)
    limit = size.flip(1).repeat(1, 2)[:, None].to(found.dtype)
    return torch.minimum(found.clamp_min(0), limit)
