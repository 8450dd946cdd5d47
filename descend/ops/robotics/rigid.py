"""Rigid motions: how a point of one frame is named in another.

    T = [[R, t], [0, 1]] ∈ SE(3):  RᵀR = I,  det R = +1
    p_robot = R p_cam + t          T⁻¹ = [[Rᵀ, −Rᵀt], [0, 1]]          T_ac = T_ab T_bc
    log R = θ n                    the rotation by θ about the axis n;  exp is its inverse (Rodrigues)

Erratum: MF (30.11) prints p_robot = (−0.058, 0.333, 0.7). Its own matrix gives (−0.0583, −0.2, 0.1667); the printed
numbers come from diag(1, −1, 1), a reflection. `check_rigid` refuses such a matrix and says how far it is from SE(3).

Systems: camera-geometry
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.errors import Mistake

TOLERANCE = 1e-5  # a matrix typed with six digits is still a rotation


def check_rotation(r: Tensor, name: str = "rotation") -> Tensor:
    """R (.., 3, 3) as it is, if it is in SO(3)."""
    if r.shape[-2:] != (3, 3):
        raise Mistake(f"{name}: a rotation is 3×3, not {'×'.join(map(str, r.shape[-2:]))}")
    if not bool(torch.isfinite(r).all()):
        raise Mistake(f"{name}: it has entries that are not finite")
    off = (r.mT @ r - torch.eye(3, dtype=r.dtype, device=r.device)).abs().amax()
    if off > TOLERANCE:
        raise Mistake(f"{name}: not in SO(3): RᵀR is not I, an entry is off by {float(off):.3g}; columns must be unit "
                      "vectors at right angles")  # fmt: skip
    det = torch.linalg.det(r).amin()
    if det < 0:
        raise Mistake(f"{name}: not in SO(3): det R = {float(det):.3g} is a reflection; a rotation has +1")
    return r


def check_rigid(t: Tensor, name: str = "transform") -> Tensor:
    """T (.., 4, 4) as it is, if it is in SE(3)."""
    if t.shape[-2:] != (4, 4):
        raise Mistake(f"{name}: a rigid motion is 4×4, not {'×'.join(map(str, t.shape[-2:]))}")
    last = torch.tensor([0.0, 0.0, 0.0, 1.0], dtype=t.dtype, device=t.device)
    if not bool(torch.isfinite(t).all()):
        raise Mistake(f"{name}: it has entries that are not finite")
    off = (t[..., 3, :] - last).abs().amax()
    if off > TOLERANCE:
        raise Mistake(f"{name}: not in SE(3): the last row must be 0, 0, 0, 1; an entry is off by {float(off):.3g}")
    check_rotation(t[..., :3, :3], name)
    return t


def make_rigid(r: Tensor, p: Tensor) -> Tensor:
    """T (.., 4, 4) of a rotation (.., 3, 3) and a translation (.., 3)."""
    shape = torch.broadcast_shapes(r.shape[:-2], p.shape[:-1])
    t = torch.zeros(*shape, 4, 4, dtype=r.dtype, device=r.device)
    t[..., :3, :3], t[..., :3, 3], t[..., 3, 3] = r, p, 1.0
    return t


def move_points(t: Tensor, p: Tensor) -> Tensor:
    """R p + t: T (.., 4, 4) and points (.., n, 3) -> (.., n, 3)"""
    return p @ t[..., :3, :3].mT + t[..., None, :3, 3]


def invert_rigid(t: Tensor) -> Tensor:
    """T⁻¹, by transposing."""
    back = t[..., :3, :3].mT
    return make_rigid(back, -(back @ t[..., :3, 3:])[..., 0])


def look_at(eye: Tensor, target: Tensor, up: Tensor) -> Tensor:
    """T (4, 4) from the frame of a camera at `eye` that looks at `target` to the frame that both are given in."""
    z = torch.nn.functional.normalize(target - eye, dim=-1)
    x = torch.linalg.cross(z, up)
    if float(x.norm()) < 1e-9:
        raise Mistake("a camera cannot look along its up direction; choose another `up`")
    x = x / x.norm()
    return make_rigid(torch.stack([x, torch.linalg.cross(z, x), z], dim=-1), eye)


def cross_matrix(v: Tensor) -> Tensor:
    """[v]×: the matrix with [v]× w = v × w, (.., 3) -> (.., 3, 3)"""
    x, y, z = v.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], dim=-1).unflatten(-1, (3, 3))


def exp_rotation(v: Tensor) -> Tensor:
    """exp [v]×: the rotation by |v| about v (.., 3) -> (.., 3, 3)"""
    theta = v.norm(dim=-1)[..., None, None]
    k = cross_matrix(v)
    a, b = torch.sinc(theta / torch.pi), torch.sinc(theta / (2 * torch.pi)).square() / 2
    return torch.eye(3, dtype=v.dtype, device=v.device) + a * k + b * k @ k


def log_rotation(r: Tensor) -> Tensor:
    """The axis times the angle 0..π (.., 3) of rotations (.., 3, 3); exact also near 0 and near π."""
    w = 0.5 * (1 + r.diagonal(dim1=-2, dim2=-1).sum(-1))  # 2 cos²(θ/2)
    v = torch.stack([r[..., 2, 1] - r[..., 1, 2], r[..., 0, 2] - r[..., 2, 0], r[..., 1, 0] - r[..., 0, 1]], -1) / 2
    sine, cosine = v.norm(dim=-1), w - 1
    theta = torch.atan2(sine, cosine)
    small = sine < 1e-6
    plain = v / torch.where(small, torch.ones_like(sine), sine)[..., None] * theta[..., None]
    turned = half_turn_axis(r) * theta[..., None]
    return torch.where(small[..., None], torch.where((cosine > 0)[..., None], v, turned), plain)


def half_turn_axis(r: Tensor) -> Tensor:
    """n (.., 3) of a rotation by π: the largest column of (R + I) / 2 = n nᵀ, as a unit vector."""
    outer = (r + torch.eye(3, dtype=r.dtype, device=r.device)) / 2
    largest = outer.diagonal(dim1=-2, dim2=-1).argmax(-1)
    column = outer.gather(-1, largest[..., None, None].expand(*largest.shape, 3, 1))[..., 0]
    return torch.nn.functional.normalize(column, dim=-1)
