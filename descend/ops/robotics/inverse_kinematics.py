"""Inverse kinematics by damped least squares: joint angles that bring the tool to a pose, for many poses at once.

    e = [ p* − p(θ) ; log(R* R(θ)ᵀ) ]                    what is missing, in metres and radians
    Δθ = Jᵀ (J Jᵀ + μ I)⁻¹ e                             min ‖J Δθ − e‖² + μ ‖Δθ‖²: finite also where J is singular
    θ ← clip(θ + Δθ, low, high)  if that makes ‖e‖ less, and μ ← μ/3; else μ ← 4μ   (Levenberg-Marquardt)

An attempt may end in a local minimum or at a limit; what has not arrived starts again from random angles. A pose that
no attempt reaches is flagged, or refused by `require_reached`. `rows` says which of the six numbers of e count: a
planar arm has two (x, y), an arm that only has to bring its tool somewhere three.

MF 30.3.5 applies IK to joint increments, where none is needed; it is for Cartesian actions (`execution.follow_pose`).

Systems: inverse-kinematics
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.ops.robotics.kinematics import Chain, jacobian_of, link_frames
from descend.ops.robotics.rigid import check_rigid, log_rotation
from descend.seeds import generator

POSE = (0, 1, 2, 3, 4, 5)
POSITION = (0, 1, 2)
PLANE = (0, 1)
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-2, 1e-12, 1e6
STEPS, RESTARTS, TOLERANCE = 60, 20, 1e-9


class Solution(NamedTuple):
    """Angles for b poses, and whether they are right."""

    theta: Tensor
    """(b, n): of the attempt that came nearest."""
    error: Tensor
    """‖e‖ that is left (b)."""
    reached: Tensor
    """(b)"""


def pose_error(pose: Tensor, target: Tensor) -> Tensor:
    """e (b, 6): way and turn from poses to targets (b, 4, 4)."""
    turn = log_rotation(target[..., :3, :3] @ pose[..., :3, :3].mT)
    return torch.cat([target[..., :3, 3] - pose[..., :3, 3], turn], dim=-1)


def damped_step(j: Tensor, e: Tensor, mu: Tensor) -> Tensor:
    """Δθ = Jᵀ (J Jᵀ + μ I)⁻¹ e: J (b, m, n), e (b, m), μ (b) -> (b, n)"""
    gram = j @ j.mT + mu[:, None, None] * torch.eye(j.shape[-2], dtype=j.dtype, device=j.device)
    return (j.mT @ torch.linalg.solve(gram, e[..., None]))[..., 0]


def descend_once(
    chain: Chain, target: Tensor, theta: Tensor, rows: tuple[int, ...], steps: int, tolerance: float
) -> tuple[Tensor, Tensor]:
    """One attempt for each pose from its own angles: where it ends (b, n), and ‖e‖ there (b)."""
    low, high = chain.limits(theta)
    chosen = list(rows)
    frames = link_frames(chain, theta)
    e = pose_error(frames[:, -1], target)[:, chosen]
    best, mu = e.norm(dim=-1), torch.full_like(theta[:, 0], FIRST_DAMPING)
    for _ in range(steps):
        if bool((best <= tolerance).all()):
            break
        step = damped_step(jacobian_of(frames)[:, chosen], e, mu)
        ahead = (theta + step).clamp(low, high)
        seen = link_frames(chain, ahead)
        missing = pose_error(seen[:, -1], target)[:, chosen]
        size = missing.norm(dim=-1)
        better = size < best
        mu = torch.where(better, mu / 3, mu * 4).clamp(LEAST_DAMPING, MOST_DAMPING)
        theta, e = torch.where(better[:, None], ahead, theta), torch.where(better[:, None], missing, e)
        frames, best = torch.where(better[:, None, None, None], seen, frames), torch.minimum(size, best)
    return theta, best


@torch.no_grad()
def inverse_kinematics(
    chain: Chain,
    target: Tensor,
    start: Tensor | None = None,
    rows: tuple[int, ...] = POSE,
    restarts: int = RESTARTS,
    seed: int = 0,
    tolerance: float = TOLERANCE,
) -> Solution:
    """Angles that bring the tool to poses (b, 4, 4).

    Args:
        start: angles (b, n) or (n) of the first attempt; the middle of the limits if none are given.
        rows: which of x, y, z and the turns about them count.
        restarts: attempts from random angles for what the first one does not reach.
        tolerance: what may be left of ‖e‖, in metres and radians.
    """
    target = check_rigid(target.double(), "target pose")
    b, random = len(target), generator(seed)
    low, high = chain.limits(target)
    middle = (low + high) / 2 if start is None else start.double()
    theta = middle.expand(b, chain.joints).clamp(low, high).clone()
    best = torch.full((b,), math.inf, dtype=torch.float64)
    found = theta.clone()
    for attempt in range(restarts + 1):
        left = (best > tolerance).nonzero()[:, 0]
        if not len(left):
            break
        if attempt:
            u = torch.rand(len(left), chain.joints, generator=random, dtype=torch.float64)
            theta[left] = (low + (high - low) * u).clamp(-math.pi, math.pi)
        ended, size = descend_once(chain, target[left], theta[left], rows, STEPS, tolerance)
        better = size < best[left]
        found[left[better]], best[left[better]] = ended[better], size[better]
    return Solution(found, best, best <= tolerance)


def require_reached(found: Solution, target: Tensor, chain: Chain) -> Tensor:
    """The angles (b, n); a pose that was not reached is a mistake that names it."""
    if bool(found.reached.all()):
        return found.theta
    worst = int(found.error.argmax())
    x, y, z = target[worst, :3, 3].tolist()
    away = float(target[worst, :3, 3].norm())
    why = f"it is {away:.3g} m from the base, the arm reaches {chain.reach:.3g} m" if away > chain.reach else (
        "the nearest that was found within the joint limits is not that pose"
    )  # fmt: skip
    raise Mistake(
        f"pose {worst} at ({x:.4g}, {y:.4g}, {z:.4g}) cannot be reached ({float(found.error[worst]):.3g} left): {why}"
    )


def two_link_angles(point: Tensor, first: float, second: float) -> Tensor:
    """Both solutions of a planar arm with two links, in closed form: points (b, 2) -> (b, 2 solutions, 2 angles)

        cos θ_2 = (x² + y² − l_1² − l_2²) / 2 l_1 l_2,     θ_1 = atan2(y, x) − atan2(l_2 sin θ_2, l_1 + l_2 cos θ_2)

    NaN where the point is out of reach."""
    cosine = (point.square().sum(-1) - first**2 - second**2) / (2 * first * second)
    bend = torch.acos(cosine.masked_fill(cosine.abs() > 1, math.nan))
    elbow = torch.stack([bend, -bend], dim=-1)
    along = torch.atan2(point[:, 1], point[:, 0])[:, None]
    shoulder = along - torch.atan2(second * elbow.sin(), first + second * elbow.cos())
    return torch.stack([shoulder, elbow], dim=-1)
