"""Serial chains: the product of the joints written out, the maker's numbers, and the Jacobian by autograd."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from descend.errors import Mistake
from descend.ops.robotics.kinematics import UR10E, Chain, jacobian, link_frames, planar_chain, tool_pose
from descend.ops.robotics.rigid import check_rigid, log_rotation
from tests.close import close


def angles(n: int) -> torch.Tensor:
    return (2 * torch.rand(n, 6, generator=torch.Generator().manual_seed(n), dtype=torch.float64) - 1) * math.pi


def by_elementary_motions(theta: np.ndarray) -> np.ndarray:
    """Rot_z Trans_z Trans_x Rot_x of every joint, each as a matrix of its own."""
    pose = np.eye(4)
    for q, a, alpha, d in zip(theta, UR10E.a, UR10E.alpha, UR10E.d, strict=True):
        turn, shift, tilt = np.eye(4), np.eye(4), np.eye(4)
        turn[:2, :2] = [[math.cos(q), -math.sin(q)], [math.sin(q), math.cos(q)]]
        shift[0, 3], shift[2, 3] = a, d
        tilt[1:3, 1:3] = [[math.cos(alpha), -math.sin(alpha)], [math.sin(alpha), math.cos(alpha)]]
        pose = pose @ turn @ shift @ tilt
    return pose


@pytest.mark.system("inverse-kinematics", "forward")
def test_poses_are_the_product_of_elementary_motions() -> None:
    theta = angles(8)
    close(tool_pose(UR10E, theta), np.stack([by_elementary_motions(q) for q in theta.numpy()]))
    check_rigid(link_frames(UR10E, theta))


@pytest.mark.system("inverse-kinematics", "forward")
def test_the_stretched_arm_is_as_long_as_its_links() -> None:
    """At all angles 0 the UR10e lies along −x: 0.6127 + 0.57155, and its wrist stands out by 0.17415 + 0.11655."""
    pose = tool_pose(UR10E, torch.zeros(1, 6, dtype=torch.float64))[0]
    close(pose[:3, 3], torch.tensor([-1.18425, -0.2907, 0.06085], dtype=torch.float64))
    planar = tool_pose(
        planar_chain(1.0, 0.5), torch.tensor([[0.0, 0.0], [math.pi / 2, -math.pi / 2]], dtype=torch.float64)
    )
    close(planar[:, :3, 3], torch.tensor([[1.5, 0, 0], [0.5, 1.0, 0]]).double())


@pytest.mark.system("inverse-kinematics")
@pytest.mark.system("inverse-kinematics", "jacobian")
def test_the_jacobian_is_autograds() -> None:
    theta = angles(3)
    for q, j in zip(theta, jacobian(UR10E, theta), strict=True):
        here = tool_pose(UR10E, q).detach()

        def moved(x: torch.Tensor, here: torch.Tensor = here) -> torch.Tensor:
            pose = tool_pose(UR10E, x)
            spin = pose[:3, :3] @ here[:3, :3].T
            turn = torch.stack([spin[2, 1] - spin[1, 2], spin[0, 2] - spin[2, 0], spin[1, 0] - spin[0, 1]]) / 2
            return torch.cat([pose[:3, 3], turn])

        close(j, torch.autograd.functional.jacobian(moved, q))


@pytest.mark.system("inverse-kinematics", "jacobian")
def test_a_small_turn_moves_the_tool_by_the_jacobian() -> None:
    theta, step = angles(5), 1e-6 * torch.randn(5, 6, generator=torch.Generator().manual_seed(1)).double()
    before, after = tool_pose(UR10E, theta), tool_pose(UR10E, theta + step)
    expected = (jacobian(UR10E, theta) @ step[..., None])[..., 0]
    moved = after[:, :3, 3] - before[:, :3, 3]
    turned = log_rotation(after[:, :3, :3] @ before[:, :3, :3].mT)
    close(torch.cat([moved, turned], -1) * 1e6, expected * 1e6, loosen=1e5)


def test_float32_is_the_same_arm() -> None:
    theta = angles(4)
    close(tool_pose(UR10E, theta.float()), tool_pose(UR10E, theta).float())


def test_what_is_no_chain_is_refused() -> None:
    with pytest.raises(Mistake, match="as many a, alpha, d"):
        Chain((1.0, 1.0), (0.0,), (0.0,), (-1.0,), (1.0,))
    with pytest.raises(Mistake, match="each low must be below its high"):
        Chain((1.0,), (0.0,), (0.0,), (1.0,), (1.0,))
    with pytest.raises(Mistake, match="5 joint angles for an arm with 6 joints"):
        tool_pose(UR10E, torch.zeros(1, 5))
    assert planar_chain(1.0, 0.5).reach == 1.5
