"""A pillar in the way: the hand has to pass in front of it or behind it, and both are as good.

    p(s) = start + s (goal − start) ± w sin(πs) x̂,   s = 1/16 .. 1            + behind, − in front, by a toss of a coin

The coin is not seen, so the demonstrations of one observation have two modes, and their mean runs into the pillar. An
episode succeeds when the hand arrives without having touched the pillar; `behind` says on which side it passed, as
the robot sees it.

Systems: diffusion-policy
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from descend.data.control.arm_world import HOME, JOINTS, SPEED, ArmWorld, Scene, draw_numbers, reach, tips
from descend.data.control.scripted import follow_way
from descend.ops.robotics.execution import apply_increment
from descend.ops.robotics.kinematics import UR10E

PILLAR = (0.58, 0.0)
RADIUS, TALL = 0.07, 0.30
WIDE, LEVEL, ACROSS = (
    0.16,
    0.12,
    0.24,
)  # how far the way bends; height of the hand; distance from the pillar at both ends
SPREAD = 0.01  # metres that the ends differ by, at most: hardly anything is seen of the coin
ARRIVED = 0.05  # metres from the goal that count as there
BETWEEN = 4  # points of a step at which the hand must be clear of the pillar


@dataclass(frozen=True)
class DetourScene(Scene):
    """With what happened on the way."""

    coin: Tensor
    """+1 behind, −1 in front (b): what the demonstrator does."""
    hit: Tensor
    """Whether the hand has touched the pillar (b)."""
    side: Tensor
    """How far behind (+) or in front (−) of the pillar the hand passed it (b)."""


@dataclass(frozen=True)
class DetourWorld(ArmWorld):
    """From one side of the pillar to the other."""

    @property
    def longest(self) -> int:
        return 16

    def reset(self, seeds: Sequence[int]) -> DetourScene:
        b, u = len(seeds), draw_numbers(seeds)
        shift = SPREAD * (2 * u[:, :2] - 1)
        start, goal = (
            torch.stack([PILLAR[0] + shift[:, i], torch.full_like(shift[:, i], y), torch.full_like(u[:, i], LEVEL)], -1)
            for i, y in enumerate((-ACROSS, ACROSS))
        )
        none = torch.full((b,), -1)
        return DetourScene(
            theta=reach(start, torch.tensor(HOME, dtype=torch.float64)),
            grip=torch.ones(b, dtype=torch.float64),
            cubes=goal[:, None],
            paint=torch.zeros(b, 1, dtype=torch.long),
            bins=goal[:, None, :2],
            bin_paint=torch.zeros(b, 1, dtype=torch.long),
            held=none,
            offset=torch.zeros(b, 3, dtype=torch.float64),
            first=none,
            target=torch.zeros(b, dtype=torch.long),
            place=torch.zeros(b, dtype=torch.long),
            coin=torch.where(u[:, 2] < 0.5, 1.0, -1.0).double(),
            hit=torch.zeros(b, dtype=torch.bool),
            side=torch.zeros(b, dtype=torch.float64),
        )

    def step(self, scene: Scene, action: Tensor) -> DetourScene:
        assert isinstance(scene, DetourScene)
        before = tips(scene.theta)
        theta = apply_increment(UR10E, scene.theta, action.double()[:, :JOINTS], SPEED)
        after = tips(theta)
        share = torch.arange(1, BETWEEN + 1, dtype=torch.float64) / BETWEEN
        way = torch.lerp(before[:, None], after[:, None], share[None, :, None])  # (b, points, 3)
        off = (way[..., :2] - torch.tensor(PILLAR, dtype=torch.float64)).norm(dim=-1)
        hit = scene.hit | ((off < RADIUS) & (way[..., 2] < TALL)).any(dim=1)
        crossed = (before[:, 1] < PILLAR[1]) & (after[:, 1] >= PILLAR[1])
        along = (PILLAR[1] - before[:, 1]) / (after[:, 1] - before[:, 1]).where(crossed, torch.ones_like(off[:, 0]))
        passed = before[:, 0] + along * (after[:, 0] - before[:, 0]) - PILLAR[0]
        return replace(scene, theta=theta, hit=hit, side=torch.where(crossed, passed, scene.side))

    def succeeded(self, scene: Scene) -> Tensor:
        """The hand is at the goal, and has not touched the pillar on its way (b)."""
        assert isinstance(scene, DetourScene)
        return ((tips(scene.theta) - scene.of_target()).norm(dim=-1) < ARRIVED) & ~scene.hit

    def judge(self, scene: Scene) -> dict[str, Tensor]:
        assert isinstance(scene, DetourScene)
        good = self.succeeded(scene)
        return {"success": good.float(), "behind": (good & (scene.side > 0)).float()}


def demonstrate_detour(scene: DetourScene, steps: int = 16) -> Tensor:
    """Commands (b, steps, 7) around the pillar, on the side that the coin says."""
    start, goal = tips(scene.theta), scene.of_target()
    s = torch.arange(1, steps + 1, dtype=torch.float64) / steps
    points = torch.lerp(start[:, None], goal[:, None], s[None, :, None])
    points[..., 0] += scene.coin[:, None] * WIDE * torch.sin(torch.pi * s)
    angles = follow_way(points, scene.theta)
    return torch.cat([angles, torch.ones_like(angles[..., :1])], dim=-1)
