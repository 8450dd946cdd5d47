"""Inverse kinematics: forward(IK(p)) = p, joint limits, the closed form of two links, and poses out of reach."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from scipy.optimize import least_squares

from descend.errors import Mistake
from descend.ops.robotics.inverse_kinematics import (
    PLANE,
    POSITION,
    damped_step,
    inverse_kinematics,
    pose_error,
    require_reached,
    two_link_angles,
)
from descend.ops.robotics.kinematics import UR10E, jacobian, planar_chain, tool_pose
from descend.ops.robotics.rigid import make_rigid
from tests.close import close


def random_poses(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Poses that some angles within ±π reach, and these angles."""
    theta = (2 * torch.rand(n, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 1) * math.pi
    return tool_pose(UR10E, theta), theta


@pytest.mark.system("inverse-kinematics")
@pytest.mark.system("inverse-kinematics", "reachable")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_reachable_poses_are_reached(seed: int) -> None:
    """At least 99% of 300 random poses to 1e-6, from the same start, in one call."""
    target, _ = random_poses(300, seed)
    found = inverse_kinematics(UR10E, target, seed=seed)
    off = pose_error(tool_pose(UR10E, found.theta), target).norm(dim=-1)
    assert (off < 1e-6).double().mean() >= 0.99
    assert torch.equal(found.reached, found.error <= 1e-9)
    assert (off[found.reached] < 1e-8).all()


@pytest.mark.system("inverse-kinematics", "restarts")
def test_restarts_find_what_one_attempt_misses() -> None:
    target, _ = random_poses(200, 3)
    once, often = (inverse_kinematics(UR10E, target, restarts=n).reached.double().mean() for n in (0, 20))
    assert once < 0.8 < 0.99 <= often


@pytest.mark.system("inverse-kinematics")
def test_two_links_by_iteration_and_in_closed_form() -> None:
    chain, random = planar_chain(0.7, 0.5), torch.Generator().manual_seed(0)
    r = 0.25 + 0.9 * torch.rand(100, generator=random, dtype=torch.float64)
    phi = 2 * math.pi * torch.rand(100, generator=random, dtype=torch.float64)
    point = torch.stack([r * phi.cos(), r * phi.sin()], -1)
    target = make_rigid(torch.eye(3, dtype=torch.float64), torch.nn.functional.pad(point, (0, 1)))
    found = inverse_kinematics(chain, target, torch.tensor([0.1, 0.3]), rows=PLANE)
    assert found.reached.all()
    both = two_link_angles(point, 0.7, 0.5)
    for k in range(2):
        close(tool_pose(chain, both[:, k])[:, :2, 3], point)
    gap = torch.remainder(both - found.theta[:, None] + math.pi, 2 * math.pi) - math.pi
    assert (gap.abs().amax(-1).amin(-1) < 1e-6).all()
    assert two_link_angles(torch.tensor([[1.3, 0.0], [0.1, 0.0]]).double(), 0.7, 0.5).isnan().any(-1).all()


@pytest.mark.system("inverse-kinematics")
@pytest.mark.system("inverse-kinematics", "damped")
def test_the_step_is_the_damped_least_squares_solution() -> None:
    """As a least-squares problem [J; √μ I] Δθ = [e; 0], also where J is singular."""
    _, theta = random_poses(4, 0)
    theta[0] = 0  # stretched out: singular
    j, mu = jacobian(UR10E, theta), torch.tensor([1e-2, 1e-4, 1.0, 1e-6], dtype=torch.float64)
    e = torch.randn(4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.linalg.matrix_rank(j[0]) < 6
    stacked = torch.cat([j, mu.sqrt()[:, None, None] * torch.eye(6, dtype=torch.float64)], dim=1)
    wanted = torch.linalg.lstsq(stacked, torch.cat([e, torch.zeros_like(e)], -1)[..., None]).solution[..., 0]
    close(damped_step(j, e, mu), wanted)


def test_scipys_least_squares_agrees_near_a_start() -> None:
    target, theta = random_poses(3, 5)
    near = theta + 0.05
    found = inverse_kinematics(UR10E, target, near, restarts=0)
    for q, pose, ours in zip(near, target, found.theta, strict=True):
        theirs = least_squares(
            lambda x, p=pose: pose_error(tool_pose(UR10E, torch.from_numpy(x)), p).numpy(), q.numpy()
        )
        close(ours, torch.from_numpy(theirs.x), loosen=1e3)


@pytest.mark.system("inverse-kinematics", "limits")
def test_joint_limits_are_kept() -> None:
    narrow = replace(UR10E, low=(-1.0, -3.0, -2.5, -3.0, -2.0, -1.0), high=(1.0, 0.0, 2.5, 0.0, 2.0, 1.0))
    low, high = narrow.limits(torch.zeros(1, dtype=torch.float64))
    u = torch.rand(100, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    target = tool_pose(narrow, low + (high - low) * u)
    found = inverse_kinematics(narrow, target, restarts=60)
    assert ((found.theta >= low) & (found.theta <= high)).all()
    assert found.reached.double().mean() >= 0.99
    free = inverse_kinematics(UR10E, target)
    assert ((free.theta < low) | (free.theta > high)).any()


@pytest.mark.system("inverse-kinematics", "unreachable")
def test_a_pose_out_of_reach_is_flagged_and_refused() -> None:
    target, _ = random_poses(3, 0)
    target[1, :3, 3] = torch.tensor([2.0, 0.0, 0.0])
    found = inverse_kinematics(UR10E, target, restarts=8)
    assert found.reached.tolist() == [True, False, True]
    with pytest.raises(Mistake, match=r"pose 1 at \(2, 0, 0\) cannot be reached .* the arm reaches 1.7"):
        require_reached(found, target, UR10E)
    crowded = replace(UR10E, low=(-0.1,) * 6, high=(0.1,) * 6)
    with pytest.raises(Mistake, match="within the joint limits is not that pose"):
        require_reached(inverse_kinematics(crowded, target[:1], restarts=3), target[:1], crowded)
    with pytest.raises(Mistake, match="det R = -1"):
        inverse_kinematics(UR10E, torch.diag(torch.tensor([1.0, 1.0, -1.0, 1.0]))[None])


def test_position_alone_leaves_the_hand_free() -> None:
    target, _ = random_poses(20, 1)
    found = inverse_kinematics(UR10E, target, rows=POSITION)
    assert found.reached.all()
    close(tool_pose(UR10E, found.theta)[:, :3, 3], target[:, :3, 3])


@pytest.mark.system("inverse-kinematics", "reachable")
def test_many_at_once_is_each_alone() -> None:
    target, theta = random_poses(6, 2)
    whole = inverse_kinematics(UR10E, target, theta + 0.1, restarts=0)
    for i in range(6):
        close(inverse_kinematics(UR10E, target[i : i + 1], theta[i : i + 1] + 0.1, restarts=0).theta[0], whole.theta[i])
