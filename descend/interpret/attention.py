"""Attention over an image as maps: where a query looks, patch by patch.

    A (b, h, t, s), the last h'·w' of the s keys are patches:      map of query i = A[i, patches] as h' × w'

The class token of a ViT is query 0. For cross-attention from object queries to an image (DETR) all keys are places of
the image, s = h'·w' with h' = H/32, w' = W/32. The map of a ViT sums to less than 1, by what goes to other tokens.

Systems: attention-maps-analysis
"""

from __future__ import annotations

from torch import Tensor

from descend.interpret.layers import as_maps


def query_maps(a: Tensor, height: int, width: int) -> Tensor:
    """Weights (b, h, t, s) over an image of this shape as maps (b, h, t, h', w')."""
    maps = as_maps(a.flatten(1, 2).transpose(1, 2), height, width)
    return maps.unflatten(1, a.shape[1:3])


def class_maps(a: Tensor, height: int, width: int) -> Tensor:
    """(b, h, h', w'): where the class token, the first one, looks."""
    return query_maps(a, height, width)[:, :, 0]
