"""Heat laid over an image: cold places keep their grey, warm ones turn yellow and red."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.interpret.grad_cam import upsample

SCALE = ((0.1, 0.15, 0.55), (0.1, 0.6, 0.7), (0.95, 0.85, 0.2), (0.85, 0.1, 0.1))
"""Colours at heat 0, 1/3, 2/3 and 1."""


def rescale_heat(heat: Tensor) -> Tensor:
    """Heat (b, h, w) scaled to 0..1 for each image; an image without any stays 0."""
    low = heat.amin(dim=(1, 2), keepdim=True)
    span = heat.amax(dim=(1, 2), keepdim=True) - low
    return torch.where(span > 0, (heat - low) / span.clamp_min(1e-30), 0.0)


def colour_heat(heat: Tensor) -> Tensor:
    """Heat (b, h, w) of 0..1 as colours (b, 3, h, w), linear between those of SCALE."""
    colours = heat.new_tensor(SCALE)
    at = heat.clamp(0, 1) * (len(SCALE) - 1)
    low = at.floor().long().clamp_max(len(SCALE) - 2)
    part = (at - low)[..., None]
    return ((1 - part) * colours[low] + part * colours[low + 1]).movedim(-1, 1)


def overlay_heat(pixels: Tensor, heat: Tensor, strength: float = 0.55) -> Tensor:
    """Images (b, c, h, w) of 0..1 with heat (b, h', w') over their grey: (b, 3, h, w) of 0..1."""
    grey = pixels.mean(dim=1, keepdim=True).expand(-1, 3, -1, -1)
    warm = colour_heat(rescale_heat(upsample(heat.to(pixels.dtype), *pixels.shape[-2:])))
    return (1 - strength) * grey + strength * warm
