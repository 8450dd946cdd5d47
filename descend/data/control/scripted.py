"""A scripted demonstrator: it knows where the cube and the bin are, and moves there by inverse kinematics.

    a1-a4 move above the cube · a5 reach it · a6 close · a7-a14 lift, move to the bin · a15, a16 open    (MF 30.3.4)

With pace p every phase takes p times as many steps. The way is a line of points for the finger tips; each is turned
into angles from those of the step before, so that the arm does not change its posture. A demonstration is a row of
commands (angles that the arm is to have after each step, and the gripper); the actions are what is missing to the first
one and then the differences, from wherever the arm is (`to_increments`).

Systems: pick-and-place
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.contracts import Batch, Chance
from descend.data.control.arm_world import BINS, CUBE, JOINTS, ArmWorld, Scene, reach, tips
from descend.ops.robotics.execution import to_increments

PHASES = {"move": 4, "reach": 1, "close": 1, "lift": 8, "open": 2}
HIGH, CARRY, DROP = 0.13, 0.22, 0.14  # heights of the finger tips: before reaching, on the way, above the bin


def plan_phases(pace: int) -> list[str]:
    """The phase of every step."""
    return [name for name, steps in PHASES.items() for _ in range(steps * pace)]


def lay_way(start: Tensor, through: list[Tensor], steps: list[int]) -> Tensor:
    """Points (b, Σ steps, 3) on the lines from `start` through points (b, 3), each so many steps after the last."""
    parts, here = [], start
    for point, count in zip(through, steps, strict=True):
        share = torch.arange(1, count + 1, dtype=start.dtype) / count
        parts.append(torch.lerp(here[:, None], point[:, None], share[None, :, None]))
        here = point
    return torch.cat(parts, dim=1)


def follow_way(points: Tensor, theta: Tensor) -> Tensor:
    """Angles (b, t, 6) that bring the finger tips to points (b, t, 3), one after another."""
    found = []
    for point in points.unbind(dim=1):
        theta = reach(point, theta)
        found.append(theta)
    return torch.stack(found, dim=1)


def script(theta: Tensor, cube: Tensor, place: Tensor, pace: int) -> Tensor:
    """Commands (b, 16 · pace, 7) from angles (b, 6) to a cube (b, 3), and with it to a place (b, 2)."""
    at = lambda xy, z: torch.cat([xy, torch.full_like(xy[:, :1], z)], dim=-1)
    up = 3 * pace
    points = lay_way(
        tips(theta),
        [at(cube[:, :2], HIGH), at(cube[:, :2], CUBE / 2), at(cube[:, :2], CARRY), at(place, DROP)],
        [4 * pace, pace, up, 8 * pace - up],
    )
    close = plan_phases(pace).index("close")
    still = points[:, close - 1 : close].expand(-1, pace, -1)
    points = torch.cat([points[:, :close], still, points[:, close:], points[:, -1:].expand(-1, 2 * pace, -1)], dim=1)
    shut = torch.tensor([name in ("close", "lift") for name in plan_phases(pace)])
    grip = (~shut).to(theta)[None, :, None].expand(len(theta), -1, 1)
    return torch.cat([follow_way(points, theta), grip], dim=-1)


def demonstrate(world: ArmWorld, scene: Scene) -> Tensor:
    """Commands (b, 16 · pace, 7) that bring each cube that is meant into its bin."""
    return script(scene.theta, scene.of_target(), scene.of_place(), world.pace)


class ScriptedPolicy:
    """The script as a policy: it plans the whole way from a state [angles, gripper, cube (, bin)]."""

    def __init__(self, world: ArmWorld):
        self.world = world
        self.chunk = len(plan_phases(world.pace))

    def plan(self, seen: Batch, chance: Chance) -> Tensor:
        state = seen["state"].double()
        theta, cube, place = state[:, :JOINTS], state[:, JOINTS + 1 : JOINTS + 4], state[:, JOINTS + 4 :]
        if not place.shape[1]:
            place = torch.tensor(BINS[:1], dtype=torch.float64).expand(len(state), 2)
        return to_increments(theta, script(theta, cube, place, self.world.pace))
