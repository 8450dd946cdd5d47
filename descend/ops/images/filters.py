"""Filters made by hand, and what one filter unit detects.

    a = ReLU(wᵀx + b)               x: the patch that the unit sees; it responds only where wᵀx > −b
    ‖x‖ = 1:  wᵀx ≤ ‖w‖             with equality for x = w/‖w‖: a unit answers most to the patch that looks like w

    vertical edge   −1 0 1 / −1 0 1 / −1 0 1         horizontal edge = its transpose; rising: > 0, falling: < 0
    Gaussian blur   (1/16) (1 2 1 / 2 4 2 / 1 2 1)   sums to 1: a flat image stays as it is
    sharpen         0 −1 0 / −1 5 −1 / 0 −1 0        sums to 1: identity + (identity − blur of the four neighbours) · 4
    edge            −1 −1 −1 / −1 8 −1 / −1 −1 −1    sums to 0: a flat image vanishes
    Sobel           1 2 1 across the edge filter: smooths along the edge, differentiates across it

Before features were learned, such filters were the features (DLD 8.2): `edge_features` is that baseline. DLD names edge
detectors without a formula; the Sobel filters and the bins are what the field uses.

Systems: hand-crafted-filters
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.ops.images.convolution import Slide, layer

FILTERS = {
    "identity": ((0, 0, 0), (0, 1, 0), (0, 0, 0)),
    "vertical": ((-1, 0, 1), (-1, 0, 1), (-1, 0, 1)),
    "horizontal": ((-1, -1, -1), (0, 0, 0), (1, 1, 1)),
    "gaussian_blur": ((1 / 16, 2 / 16, 1 / 16), (2 / 16, 4 / 16, 2 / 16), (1 / 16, 2 / 16, 1 / 16)),
    "sharpen": ((0, -1, 0), (-1, 5, -1), (0, -1, 0)),
    "edge": ((-1, -1, -1), (-1, 8, -1), (-1, -1, -1)),
    "sobel_x": ((-1, 0, 1), (-2, 0, 2), (-1, 0, 1)),
    "sobel_y": ((-1, -2, -1), (0, 0, 0), (1, 2, 1)),
}


def kernel(name: str, dtype: torch.dtype = torch.float32) -> Tensor:
    """A filter (3, 3) by name."""
    if name not in FILTERS:
        raise ValueError(f"there is no filter {name!r}; the filters are {', '.join(FILTERS)}")
    return torch.tensor(FILTERS[name], dtype=dtype)


def bank(names: tuple[str, ...], dtype: torch.dtype = torch.float32) -> Tensor:
    """Several filters as the weights (n, 1, 3, 3) of a layer."""
    return torch.stack([kernel(name, dtype) for name in names])[:, None]


def apply(x: Tensor, w: Tensor, padding: int = 0) -> Tensor:
    """One filter (K, K) on images (.., h, w), every channel for itself; a colour image keeps its channels."""
    flat = x.reshape(-1, 1, *x.shape[-2:])
    y = layer(flat, w[None, None].to(x.dtype), None, Slide(padding=padding))
    return y.view(*x.shape[:-2], *y.shape[-2:])


def response_map(x: Tensor, w: Tensor, b: float = 0.0) -> Tensor:
    """ReLU(wᵀx + b) of one unit at every place: images (b, c, h, w), filter (c, K, K) -> (b, h', w')."""
    return layer(x, w[None], torch.full((1,), b, dtype=x.dtype)).relu().squeeze(1)


def preferred_patch(w: Tensor) -> Tensor:
    """w/‖w‖: of all patches of length 1 the one with the largest response, ‖w‖."""
    return w / w.norm()


def gradient(x: Tensor) -> tuple[Tensor, Tensor]:
    """Size and direction of the change at every pixel of (.., h, w), by the two Sobel filters; the border is copied."""
    flat = F.pad(x.reshape(-1, 1, *x.shape[-2:]), (1, 1, 1, 1), mode="replicate")
    across, down = layer(flat, bank(("sobel_x", "sobel_y"), x.dtype)).view(*x.shape[:-2], 2, *x.shape[-2:]).unbind(-3)
    return (across.square() + down.square()).sqrt(), torch.atan2(down, across)


def edge_features(x: Tensor, cells: int = 4, bins: int = 8) -> Tensor:
    """How much edge of each direction each part of the image has: grey images (b, h, w) -> (b, bins · cells²).

    The direction is spread over the two nearest of `bins` bins, then averaged over cells × cells parts.
    """
    size, direction = gradient(x)
    at = torch.arange(bins, dtype=x.dtype, device=x.device)[:, None, None]
    gap = (direction[:, None] * (bins / (2 * torch.pi)) - at + bins / 2) % bins - bins / 2  # in bins, around the circle
    share = (1 - gap.abs()).clamp_min(0)
    return F.adaptive_avg_pool2d(size[:, None] * share, cells).flatten(1)
