"""A table, an arm, cubes and bins: a deterministic kinematic world, for many episodes at once.

    θ ← clip(θ + clip(a_1..6, ±v), limits)        gripper ← gripper + clip(a_7 − gripper, ±1/pace)       a ∈ ℝ⁷

The arm is a UR10e whose hand points down. Fingers that close around a cube (the point between them lies inside it) hold
it, and it follows them; when they open it falls onto the table, or into the bin below. There are no forces: what is
learned here is where to go and when to grasp, not how hard. (A world with contacts would be MuJoCo's; it is left out,
since it would add a dependency and nothing that the systems here are judged by.)

Every episode is a function of its seed and its actions, whatever else is in the batch. `gymnasium` sees the same world
one episode at a time (`arm_env.py`).

Systems: pick-and-place
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.ops.robotics.execution import apply_increment
from descend.ops.robotics.inverse_kinematics import inverse_kinematics, require_reached
from descend.ops.robotics.kinematics import UR10E, tool_pose
from descend.ops.robotics.rigid import make_rigid
from descend.seeds import generator

JOINTS, ACTIONS = 6, 7
SPEED = 0.5  # radians that a joint turns in a step, at most
CUBE, BIN = 0.06, 0.16  # sides, in metres
HAND = 0.16  # from the flange to the point between the finger tips
NEAR, FAR, SIDE = 0.40, 0.70, 0.24  # where cubes lie: x from NEAR to FAR, y from −SIDE to SIDE
APART = 0.15  # metres between the centres of two cubes, at least
BINS = ((0.52, -0.42), (0.52, 0.42))  # centres
HOME = (2.8001, -1.8480, 2.1933, -1.9161, -1.5708, -1.9123)  # finger tips at (0.52, 0, 0.3), elbow up
PAINTS = ("red", "green", "blue", "yellow")
DOWN = torch.tensor([[1.0, 0, 0], [0, -1, 0], [0, 0, -1]], dtype=torch.float64)
CANDIDATES, NUMBERS = 12, 128  # places tried for a further cube; random numbers of an episode


@dataclass(frozen=True)
class Scene:
    """The state of b episodes."""

    theta: Tensor
    """Joint angles (b, 6)."""
    grip: Tensor
    """How far the gripper is open (b): 1 open, 0 closed."""
    cubes: Tensor
    """Centres (b, m, 3)."""
    paint: Tensor
    """Number of each cube's colour in PAINTS (b, m)."""
    bins: Tensor
    """Centres (b, k, 2)."""
    bin_paint: Tensor
    """Number of each bin's colour (b, k)."""
    held: Tensor
    """The cube in the hand, or −1 (b)."""
    offset: Tensor
    """From the finger tips to the centre of the cube that is held (b, 3)."""
    first: Tensor
    """The cube that was grasped first, or −1 (b)."""
    target: Tensor
    """The cube that is to be moved (b), .."""
    place: Tensor
    """.. and the bin for it (b)."""

    def __len__(self) -> int:
        return len(self.theta)

    def changed(self, **parts: Any) -> Scene:
        return replace(self, **parts)

    def of_target(self) -> Tensor:
        """Centre of the cube that is meant (b, 3)."""
        return self.cubes[torch.arange(len(self)), self.target]

    def of_place(self) -> Tensor:
        """Centre of the bin that is meant (b, 2)."""
        return self.bins[torch.arange(len(self)), self.place]


def tips(theta: Tensor) -> Tensor:
    """The point between the finger tips: angles (b, 6) -> (b, 3)"""
    pose = tool_pose(UR10E, theta)
    return pose[..., :3, 3] + HAND * pose[..., :3, 2]


def hand_pose(point: Tensor) -> Tensor:
    """The pose of the flange that brings the finger tips to points (b, 3), with the hand pointing down."""
    return make_rigid(DOWN, point + torch.tensor([0.0, 0.0, HAND], dtype=point.dtype))


def reach(point: Tensor, start: Tensor) -> Tensor:
    """Angles (b, 6) that bring the finger tips to points (b, 3), near the angles where the arm is."""
    target = hand_pose(point)
    return require_reached(inverse_kinematics(UR10E, target, start), target, UR10E)


@dataclass(frozen=True)
class ArmWorld:
    """So many cubes of different colours, so many bins; `pace` is how many steps stand for one of the book's."""

    cubes: int = 1
    bins: int = 1
    pace: int = 2
    jitter: float = 0.08
    """The angles at the start are off by up to this."""

    def __post_init__(self) -> None:
        if not 1 <= self.cubes <= len(PAINTS) or not 1 <= self.bins <= len(BINS):
            raise Mistake(
                f"{self.cubes} cubes and {self.bins} bins: there is room for 1 to {len(PAINTS)} cubes and 1 or 2 bins"
            )

    @property
    def longest(self) -> int:
        """Steps of an episode, at most."""
        return 26 * self.pace

    @property
    def seen(self) -> int:
        """Numbers of a state: angles, gripper, the cube, and the bin where there are several."""
        return JOINTS + 1 + 3 + (2 if self.bins > 1 else 0)

    def reset(self, seeds: Sequence[int]) -> Scene:
        """The first scene of each episode."""
        b, u = len(seeds), draw_numbers(seeds)
        cubes = place_cubes(u[:, : 2 * CANDIDATES * self.cubes].view(b, self.cubes, CANDIDATES, 2))
        spare = u[:, -24:]
        theta = torch.tensor(HOME, dtype=torch.float64) + self.jitter * (2 * spare[:, :JOINTS] - 1)
        none = torch.full((b,), -1)
        return Scene(
            theta=theta,
            grip=torch.ones(b, dtype=torch.float64),
            cubes=torch.cat([cubes, torch.full((b, self.cubes, 1), CUBE / 2, dtype=torch.float64)], -1),
            paint=spare[:, 6:10].argsort(dim=1)[:, : self.cubes],
            bins=torch.tensor(BINS, dtype=torch.float64)[: self.bins].expand(b, -1, -1),
            bin_paint=spare[:, 10:14].argsort(dim=1)[:, : self.bins],
            held=none,
            offset=torch.zeros(b, 3, dtype=torch.float64),
            first=none,
            target=(spare[:, 14] * self.cubes).long(),
            place=(spare[:, 15] * self.bins).long(),
        )

    def step(self, scene: Scene, action: Tensor) -> Scene:
        """The scene after actions (b, 7): joint increments, and how far the gripper is to open."""
        action = action.double()
        theta = apply_increment(UR10E, scene.theta, action[:, :JOINTS], SPEED)
        limit = 1 / self.pace
        grip = scene.grip + (action[:, JOINTS].clamp(0, 1) - scene.grip).clamp(-limit, limit)
        return carry(scene.changed(theta=theta, grip=grip), scene.grip)

    def state(self, scene: Scene) -> Tensor:
        """s = [angles, gripper, position of the cube that is meant (, of its bin)] (b, seen)."""
        parts = [scene.theta, scene.grip[:, None], scene.of_target()]
        return torch.cat(parts + ([scene.of_place()] if self.bins > 1 else []), dim=-1).float()

    def succeeded(self, scene: Scene) -> Tensor:
        """The cube that is meant lies in its bin, and nobody holds it (b)."""
        off = (scene.of_target()[:, :2] - scene.of_place()).abs().amax(-1)
        return (off < BIN / 2) & (scene.held < 0) & (scene.first >= 0)

    def judge(self, scene: Scene) -> dict[str, Tensor]:
        """What an episode that ended here is worth."""
        found = {"success": self.succeeded(scene).float()}
        return found | ({"named": (scene.first == scene.target).float()} if self.cubes > 1 else {})


def draw_numbers(seeds: Sequence[int]) -> Tensor:
    """Uniform random numbers for each episode, of its seed alone (b, NUMBERS)."""
    return torch.stack([torch.rand(NUMBERS, generator=generator(int(s)), dtype=torch.float64) for s in seeds])


def place_cubes(u: Tensor) -> Tensor:
    """Places (b, m, 2) of cubes, each APART from those before it, from random numbers (b, m, tries, 2)."""
    low, high = torch.tensor([NEAR, -SIDE], dtype=u.dtype), torch.tensor([FAR, SIDE], dtype=u.dtype)
    tried, rows = low + (high - low) * u, torch.arange(len(u))
    chosen = [tried[:, 0, 0]]
    for i in range(1, u.shape[1]):
        gap = torch.cdist(tried[:, i], torch.stack(chosen, dim=1)).amin(dim=-1)
        free = gap > APART
        which = torch.where(free.any(dim=1), free.int().argmax(dim=1), gap.argmax(dim=1))
        chosen.append(tried[rows, i, which])
    return torch.stack(chosen, dim=1)


def carry(scene: Scene, grip: Tensor) -> Scene:
    """What the fingers do to the cubes, after a step from this opening of the gripper."""
    at, rows = tips(scene.theta), torch.arange(len(scene))
    closing, opening = (grip >= 0.5) & (scene.grip < 0.5), (grip < 0.5) & (scene.grip >= 0.5)
    away = (scene.cubes - at[:, None]).abs().amax(dim=-1)
    nearest = away.argmin(dim=1)
    grasped = closing & (away[rows, nearest] < CUBE / 2) & (scene.held < 0)
    held = torch.where(grasped, nearest, torch.where(opening, -1, scene.held))
    offset = torch.where(grasped[:, None], scene.cubes[rows, nearest] - at, scene.offset)
    cubes = scene.cubes.clone()
    carried = held >= 0
    cubes[rows[carried], held[carried]] = (at + offset)[carried]
    fallen = opening & (scene.held >= 0)
    cubes[rows[fallen], scene.held[fallen], 2] = CUBE / 2
    first = torch.where((scene.first < 0) & grasped, nearest, scene.first)
    return scene.changed(cubes=cubes, held=held, offset=offset, first=first)
