"""Tensors of images as a report takes them."""

from __future__ import annotations

import numpy as np
from torch import Tensor


def channels_last(x: Tensor) -> np.ndarray:
    """(.., c, h, w) -> (.., h, w, 3), or (.., h, w) for one channel"""
    return (x.squeeze(-3) if x.shape[-3] == 1 else x.movedim(-3, -1)).cpu().numpy()
