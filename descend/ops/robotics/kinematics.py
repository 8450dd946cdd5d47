"""Forward kinematics of a serial chain: joint angles -> the pose of every frame along an arm, and the Jacobian.

    A_i(θ) = Rot_z(θ_i) Trans_z(d_i) Trans_x(a_i) Rot_x(α_i)            Denavit-Hartenberg
    T_i = A_1 A_2 .. A_i,        pose of the tool = T_n
    J = [ z_i × (p_n − p_i) ; z_i ]      column i = 0..n−1: what a turn of joint i does to position and orientation of
                                         the tool; z_i, p_i are axis and origin of frame i

    ẋ = J θ̇

The UR10e is the arm that MF 30.3 names; its lengths are the maker's. Left out: prismatic joints and branching chains.

Systems: inverse-kinematics
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from descend.errors import Mistake

TURN = 2 * math.pi


@dataclass(frozen=True)
class Chain:
    """n revolute joints by their Denavit-Hartenberg numbers, in metres and radians."""

    a: tuple[float, ...]
    """Along x."""
    alpha: tuple[float, ...]
    """About x."""
    d: tuple[float, ...]
    """Along z."""
    low: tuple[float, ...]
    """Least angle of each joint."""
    high: tuple[float, ...]
    """Greatest angle."""

    def __post_init__(self) -> None:
        if len({len(part) for part in (self.a, self.alpha, self.d, self.low, self.high)}) != 1:
            raise Mistake("a chain needs as many a, alpha, d, low and high as it has joints")
        if any(low >= high for low, high in zip(self.low, self.high, strict=True)):
            raise Mistake("a chain's joint limits: each low must be below its high")

    @property
    def joints(self) -> int:
        return len(self.a)

    @property
    def reach(self) -> float:
        """No point of the tool is farther from the base than this."""
        return sum(math.hypot(a, d) for a, d in zip(self.a, self.d, strict=True))

    def limits(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Least and greatest angles (n)."""
        ends = torch.tensor([self.low, self.high], dtype=torch.float64).to(like)
        return ends[0], ends[1]


UR10E = Chain(
    a=(0.0, -0.6127, -0.57155, 0.0, 0.0, 0.0),
    alpha=(math.pi / 2, 0.0, 0.0, math.pi / 2, -math.pi / 2, 0.0),
    d=(0.1807, 0.0, 0.0, 0.17415, 0.11985, 0.11655),
    low=(-TURN, -TURN, -math.pi, -TURN, -TURN, -TURN),
    high=(TURN, TURN, math.pi, TURN, TURN, TURN),
)


def planar_chain(*lengths: float) -> Chain:
    """An arm in the plane z = 0."""
    none = (0.0,) * len(lengths)
    return Chain(lengths, none, none, (-math.pi,) * len(lengths), (math.pi,) * len(lengths))


@cache
def read_lengths(chain: Chain) -> Tensor:
    """a, d, cos α and sin α of every joint (4, n)."""
    turns = [[f(x) for x in chain.alpha] for f in (math.cos, math.sin)]
    return torch.tensor([chain.a, chain.d, *turns], dtype=torch.float64)


def joint_motion(chain: Chain, theta: Tensor) -> Tensor:
    """A_i of every joint: angles (.., n) -> (.., n, 4, 4)"""
    a, d, ca, sa = (row.to(theta) for row in read_lengths(chain))
    c, s = theta.cos(), theta.sin()
    o, one = torch.zeros_like(c), torch.ones_like(c)
    rows = [c, -s * ca, s * sa, a * c, s, c * ca, -c * sa, a * s, o, sa + o, ca + o, d + o, o, o, o, one]
    return torch.stack(rows, dim=-1).unflatten(-1, (4, 4))


def link_frames(chain: Chain, theta: Tensor) -> Tensor:
    """T_0 = I, T_1, .., T_n: angles (.., n) -> (.., n + 1, 4, 4)"""
    if theta.shape[-1] != chain.joints:
        raise Mistake(f"{theta.shape[-1]} joint angles for an arm with {chain.joints} joints")
    frame = torch.eye(4, dtype=theta.dtype, device=theta.device).expand(*theta.shape[:-1], 4, 4)
    frames = [frame]
    for step in joint_motion(chain, theta).unbind(-3):
        frame = frame @ step
        frames.append(frame)
    return torch.stack(frames, dim=-3)


def tool_pose(chain: Chain, theta: Tensor) -> Tensor:
    """T_n: angles (.., n) -> (.., 4, 4)"""
    return link_frames(chain, theta)[..., -1, :, :]


def jacobian_of(frames: Tensor) -> Tensor:
    """J (.., 6, n) from the frames of a chain (.., n + 1, 4, 4): velocity of the tool, then its rate of turning."""
    axis, origin = frames[..., :-1, :3, 2], frames[..., :-1, :3, 3]
    linear = torch.linalg.cross(axis, frames[..., -1:, :3, 3] - origin)
    return torch.cat([linear, axis], dim=-1).mT


def jacobian(chain: Chain, theta: Tensor) -> Tensor:
    """J (.., 6, n) at angles (.., n)."""
    return jacobian_of(link_frames(chain, theta))
