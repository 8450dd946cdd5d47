"""Grad-CAM: where the maps of a layer support a class.

    α_k = mean_ij ∂z_y / ∂A_kij        L_ij = max(0, Σ_k α_k A_kij)

brought to the size of the image. A is the output of any layer that has places: maps (b, k, h', w') of a convolution, or
tokens (b, t, d) of a vision transformer, whose patches are laid out as a grid. After global average pooling and one
linear layer, α_k = w_yk / (h'w'): then L is the class activation map of that layer.

Systems: filter-visualization
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.errors import Mistake
from descend.interpret.layers import answer, as_maps, evaluation_mode, list_convolutions, watch_layer


def grad_cam(model: nn.Module, x: Tensor, y: Tensor | None = None, name: str = "") -> Tensor:
    """L (b, h, w) ≥ 0 of images x (b, c, h, w) for classes y (b) or the most likely, at a layer or the last conv."""
    return upsample(coarse_cam(model, x, y, name), *x.shape[-2:])


def coarse_cam(model: nn.Module, x: Tensor, y: Tensor | None = None, name: str = "") -> Tensor:
    """L (b, h', w') at the size of the layer."""
    name = name or next(reversed(list_convolutions(model)), "")
    if not name:
        raise Mistake(f"{type(model).__name__} has no convolution; name a layer that has maps or tokens")
    with evaluation_mode(model), torch.enable_grad(), watch_layer(model, name) as seen:
        z, y = answer(model, x.detach().clone().requires_grad_(), y)  # a graph, even where all weights are frozen
        a = seen[-1]
        (g,) = torch.autograd.grad(z.gather(1, y[:, None]).sum(), a)
    a, g = (as_maps(part.detach(), *x.shape[-2:]) for part in (a, g))
    alpha = g.mean(dim=(2, 3), keepdim=True)
    return (alpha * a).sum(dim=1).clamp_min(0)


def upsample(heat: Tensor, height: int, width: int) -> Tensor:
    """(b, h', w') -> (b, height, width), bilinear."""
    return F.interpolate(heat[:, None], size=(height, width), mode="bilinear", align_corners=False)[:, 0]
