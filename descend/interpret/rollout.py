"""Attention rollout: how much each patch reaches the class token, through all layers.

    Ā_l = (mean over heads of A_l + I) / 2        the residual path is half of what a layer passes on
    R = Ā_L ⋯ Ā_2 Ā_1                             rows sum to 1
    heat of patch j = R[class token, j]           or the mean over the rows where there is no class token

The weights A_l (b, h, t, t) come from `descend.nn.attention.maps.attention_maps`, or from any model that shows them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.interpret.layers import as_maps


def rollout(maps: Sequence[Tensor]) -> Tensor:
    """R (b, t, t) of the weights of every layer, first layer first."""
    if not maps or any(a.shape != maps[0].shape or a.shape[-1] != a.shape[-2] for a in maps):
        raise Mistake("rollout needs the square attention weights (b, h, t, t) of every layer, all of one shape")
    eye = torch.eye(maps[0].shape[-1], dtype=maps[0].dtype, device=maps[0].device)
    r = eye.expand(len(maps[0]), -1, -1)
    for a in maps:
        r = (a.mean(dim=1) + eye) / 2 @ r
    return r


def rollout_heat(maps: Sequence[Tensor], height: int, width: int) -> Tensor:
    """(b, h', w'): the patches' shares for the first token, or for all of them where every token is a patch."""
    r = rollout(maps)
    grid = as_maps(r.transpose(1, 2), height, width)  # (b, looker, h', w')
    patches = grid.shape[-1] * grid.shape[-2]
    return grid[:, 0] if patches < r.shape[-1] else grid.mean(dim=1)
