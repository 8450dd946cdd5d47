"""Pinhole camera: where a point is seen, and where a pixel with a depth is.

    K = [[f_x, 0, c_x], [0, f_y, c_y], [0, 0, 1]]
    project         u = f_x X / Z + c_x,          v = f_y Y / Z + c_y          what is behind the camera has no pixel
    back-project    X = (u − c_x) d / f_x,        Y = (v − c_y) d / f_y,       Z = d

X points right, Y down, Z into the image; d is the depth along Z, as an RGB-D camera tells it, not the distance. A
pixel's centre is at (column + ½, row + ½) where an image is drawn or read (`pixel_centres`).

Systems: camera-geometry
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.errors import Mistake


def intrinsics(f: tuple[float, float], c: tuple[float, float]) -> Tensor:
    """K (3, 3) of focal lengths and principal point, in pixels."""
    if not (f[0] > 0 and f[1] > 0):
        raise Mistake(f"focal lengths {f[0]:g} and {f[1]:g}: both must be above 0 pixels")
    return torch.tensor([[f[0], 0.0, c[0]], [0.0, f[1], c[1]], [0.0, 0.0, 1.0]], dtype=torch.float64)


def check_intrinsics(k: Tensor) -> Tensor:
    """K as it is, if it is a camera matrix of the form above."""
    if k.shape != (3, 3) or not torch.isfinite(k).all():
        raise Mistake(f"a camera matrix is 3×3 and finite, not of shape {tuple(k.shape)}")
    if not (k[0, 0] > 0 and k[1, 1] > 0):
        raise Mistake(f"camera matrix: focal lengths {k[0, 0]:g} and {k[1, 1]:g} must be above 0")
    expected = torch.diag(torch.diagonal(k)) + torch.zeros_like(k)
    expected[:2, 2], expected[2, 2] = k[:2, 2], 1.0
    if not torch.equal(k, expected):
        raise Mistake("camera matrix: it must be [[f_x, 0, c_x], [0, f_y, c_y], [0, 0, 1]], without skew")
    return k


def project(points: Tensor, k: Tensor) -> Tensor:
    """Points (.., 3) of the camera's frame -> pixels (.., 2)."""
    depth = points[..., 2:]
    if bool((depth <= 0).any()):
        raise Mistake(f"a point at depth {float(depth.min()):g} is behind the camera: it has no pixel")
    return points[..., :2] / depth * torch.diagonal(k)[:2].to(points) + k[:2, 2].to(points)


def back_project(pixels: Tensor, depth: Tensor, k: Tensor) -> Tensor:
    """Pixels (.., 2) and depths (..) -> points (.., 3) of the camera's frame."""
    if not bool((depth > 0).all()):
        raise Mistake(f"depth {float(depth.min()):g}: it must be above 0; an RGB-D camera says 0 where it saw nothing")
    flat = (pixels - k[:2, 2].to(pixels)) / torch.diagonal(k)[:2].to(pixels)
    return torch.cat([flat * depth[..., None], depth[..., None]], dim=-1)


def box_centre(boxes: Tensor) -> Tensor:
    """x0, y0, x1, y1 (.., 4) -> u, v (.., 2)"""
    return (boxes[..., :2] + boxes[..., 2:]) / 2


def depth_at(depth: Tensor, boxes: Tensor) -> Tensor:
    """The depth that an image (b, h, w) has at the middle of each box (b, m, 4) -> (b, m)."""
    b, height, width = depth.shape
    at = box_centre(boxes).floor().long()
    column, row = at[..., 0].clamp(0, width - 1), at[..., 1].clamp(0, height - 1)
    return depth[torch.arange(b, device=depth.device)[:, None], row, column]


def pixel_centres(height: int, width: int) -> Tensor:
    """(u, v) of every pixel, row by row (height · width, 2)."""
    v, u = torch.meshgrid(
        torch.arange(height, dtype=torch.float64) + 0.5, torch.arange(width, dtype=torch.float64) + 0.5, indexing="ij"
    )
    return torch.stack([u, v], dim=-1).flatten(0, 1)
