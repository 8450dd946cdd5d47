"""What the filters of a convolution look like, and how ordered they are.

    filter k        w_k (c, h, w), shown by itself: 0 is grey, the largest weight white or black
    spectrum        P(u, v) ∝ Σ_c |FFT(w_kc − mean)(u, v)|²,  Σ P = 1
    entropy         H_k = −Σ P log P / log n ∈ [0, 1]        0: one wave; 1: all frequencies alike, as in white noise

First filters of a trained network are oriented edges and opposing colours (AlexNet: 64 of 3×11×11; the paper has 96),
so their entropy is lower than that of random ones; deeper layers answer to textures, parts and objects. The books say
"spatial entropy" and give no formula; the spectrum is the choice made here.

Systems: filter-visualization
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.interpret.layers import find_layer, list_convolutions


def read_filters(model: nn.Module, name: str = "") -> Tensor:
    """The filters (k, c, h, w) of a convolution, without a name of the first one."""
    name = name or next(iter(list_convolutions(model)), "")
    if not name:
        raise Mistake(f"{type(model).__name__} has no convolution, so it has no filters")
    found = find_layer(model, name)
    if not isinstance(found, nn.Conv2d):
        known = ", ".join(list_convolutions(model)) or "none"
        raise Mistake(f"layer {name!r} is a {type(found).__name__}; the convolutions are: {known}")
    return found.weight.detach()


def scale_filters(weights: Tensor) -> Tensor:
    """Filters (k, c, h, w) as images of 0..1: (k, 3, h, w) for colour inputs, else a grey one each (k·c, 1, h, w).

    w / max|w| / 2 + ½, for each filter by itself.
    """
    if weights.shape[1] != 3:
        weights = weights.flatten(0, 1)[:, None]
    top = weights.abs().amax(dim=(1, 2, 3), keepdim=True).clamp_min(1e-12)
    return weights / top / 2 + 0.5


def measure_entropies(weights: Tensor) -> Tensor:
    """H_k (k) of filters (k, c, h, w)."""
    n = weights[0, 0].numel() - 1  # the constant is taken out
    if n < 2:
        raise Mistake("filters of 1×1 have no spectrum; choose a layer with larger ones")
    energy = torch.fft.fft2(weights.double()).abs().square().sum(dim=1).flatten(1)[:, 1:]
    share = energy / energy.sum(dim=1, keepdim=True).clamp_min(1e-300)
    return torch.special.entr(share).sum(dim=1) / math.log(n)
