"""Where a box will be in the next frame: a constant velocity, or nothing at all.

    z = (cx, cy, w, h): each number p moves on its own with a velocity v for each frame,  x = (p, v)

    predict    x ← F x,  P ← F P Fᵀ + Q         F = [1 1; 0 1],  Q = σ_a² [¼ ½; ½ 1]     a random acceleration
    correct    K = P Hᵀ / (H P Hᵀ + σ_z²)       H = [1 0]
               x ← x + K (z − p),  P ← (I − K H) P
    start      x = (z, 0),  P = diag(σ_z², σ_v²)

The Kalman filter of a constant velocity. The four numbers do not depend on each other, so one filter of eight is four
filters of two, and all boxes are filtered at once. σ_z, σ_a and σ_v grow with the box, √(w h); sizes change less than
places do. In the long run K is the constant gain of an α-β filter, α = K_0 and β = K_1, with β = 2(2 − α) − 4 √(1 − α)
and (σ_a / σ_z)² = β² / (1 − α). `Still` is the book's form: a track is where it was in the frame before.

Systems: multi-object-tracking
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from descend.ops.boxes import to_centre, to_corners
from descend.ranges import Positive, Share

SMALLEST = 1e-3  # pixels of a side that was predicted


class Moving(NamedTuple):
    """What is known of n boxes: cx, cy, w, h with their velocities, and how certain that is."""

    mean: Tensor
    """(n, 4, 2)"""
    covariance: Tensor
    """(n, 4, 2, 2)"""

    def boxes(self) -> Tensor:
        """x0, y0, x1, y1 (n, 4)"""
        place = self.mean[..., 0]
        return to_corners(torch.cat([place[:, :2], place[:, 2:].clamp_min(SMALLEST)], dim=1))

    def choose(self, rows: Tensor) -> Moving:
        """Some of them."""
        return Moving(self.mean[rows], self.covariance[rows])


class Motion(Protocol):
    """How boxes move from frame to frame."""

    def start(self, boxes: Tensor) -> Moving: ...

    def predict(self, state: Moving) -> Moving: ...

    def correct(self, state: Moving, boxes: Tensor) -> Moving: ...


@dataclass(frozen=True)
class ConstantVelocity:
    """The Kalman filter. Its deviations are shares of the box's size √(w h)."""

    measured: Positive = 0.05
    """σ_z of a detection."""
    acceleration: Positive = 0.03
    """σ_a, each frame."""
    speed: Positive = 0.5
    """σ_v of a new box, which may move in any direction."""
    growth: Share = 0.1
    """σ_a and σ_v of width and height are this share of those of the centre."""

    def start(self, boxes: Tensor) -> Moving:
        """Boxes (n, 4) seen for the first time: their velocity is not known."""
        z = to_centre(boxes)
        mean = torch.stack([z, torch.zeros_like(z)], dim=-1)
        size, share = measure_size(z), self.shares(z)
        variances = torch.stack([(self.measured * size).expand_as(z), self.speed * size * share], dim=-1).square()
        return Moving(mean, torch.diag_embed(variances))

    def predict(self, state: Moving) -> Moving:
        """One frame later."""
        z = state.mean[..., 0]
        deviation = self.acceleration * measure_size(z) * self.shares(z)
        return predict_linear(state, deviation.square())

    def correct(self, state: Moving, boxes: Tensor) -> Moving:
        """With the boxes (n, 4) that were seen."""
        z = to_centre(boxes)
        deviation = self.measured * measure_size(z)
        return correct_linear(state, z, deviation.square().expand_as(z))

    def shares(self, z: Tensor) -> Tensor:
        return z.new_tensor([1.0, 1.0, self.growth, self.growth])


@dataclass(frozen=True)
class Still:
    """A box stays where it was seen."""

    def start(self, boxes: Tensor) -> Moving:
        z = to_centre(boxes)
        mean = torch.stack([z, torch.zeros_like(z)], dim=-1)
        return Moving(mean, torch.zeros(*mean.shape, 2, dtype=mean.dtype))

    def predict(self, state: Moving) -> Moving:
        return state

    def correct(self, state: Moving, boxes: Tensor) -> Moving:
        return self.start(boxes)


def measure_size(z: Tensor) -> Tensor:
    """√(w h) of boxes cx, cy, w, h (n, 4) -> (n, 1)"""
    return z[:, 2:].clamp_min(SMALLEST).prod(dim=1, keepdim=True).sqrt()


def predict_linear(state: Moving, acceleration: Tensor) -> Moving:
    """F x and F P Fᵀ + Q, with σ_a² (n, 4)."""
    (p, v), c = state.mean.unbind(-1), state.covariance
    both = c[..., 0, 1] + c[..., 1, 1]
    pp = c[..., 0, 0] + c[..., 0, 1] + both + acceleration / 4
    pv, vv = both + acceleration / 2, c[..., 1, 1] + acceleration
    covariance = torch.stack([torch.stack([pp, pv], -1), torch.stack([pv, vv], -1)], dim=-2)
    return Moving(torch.stack([p + v, v], dim=-1), covariance)


def correct_linear(state: Moving, z: Tensor, variance: Tensor) -> Moving:
    """What a measurement z (n, 4) with σ_z² (n, 4) changes."""
    first = state.covariance[..., 0, :]  # H P (n, 4, 2)
    gain = first / (first[..., :1] + variance[..., None])
    mean = state.mean + gain * (z - state.mean[..., 0])[..., None]
    return Moving(mean, state.covariance - gain[..., :, None] * first[..., None, :])
