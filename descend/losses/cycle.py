"""Cycle consistency: what is translated there and back should be what it was.

    L_cyc = E_x ‖G_X(G_Y(x)) − x‖₁ + E_y ‖G_Y(G_X(y)) − y‖₁          G_Y: X -> Y,  G_X: Y -> X

‖·‖₁ is the sum over an example's entries; their mean is the same loss with another λ, and does not depend on the size
of the images. Both are here. Zero exactly when the two maps are inverse to each other on the data.

    L_identity = E_y ‖G_Y(y) − y‖₁ + E_x ‖G_X(x) − x‖₁               of the paper: what is there already stays

Systems: cyclegan
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from torch import Tensor

Translator = Callable[[Tensor], Tensor]
Over = Literal["mean", "sum"]


def l1_distance(x: Tensor, y: Tensor, over: Over = "mean") -> Tensor:
    """E ‖x − y‖₁ of examples (b, ..): the mean over examples of the mean or the sum over entries."""
    difference = (x - y).abs()
    return difference.mean() if over == "mean" else difference.sum() / len(x)


def cycle_loss(x: Tensor, y: Tensor, to_x: Translator, to_y: Translator, over: Over = "mean") -> Tensor:
    """E ‖G_X(G_Y(x)) − x‖₁ + E ‖G_Y(G_X(y)) − y‖₁, with `to_x` = G_X and `to_y` = G_Y."""
    return l1_distance(to_x(to_y(x)), x, over) + l1_distance(to_y(to_x(y)), y, over)
