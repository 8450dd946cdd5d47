"""Films of coloured shapes that move, each with an identity: what a tracker learns from and is judged by.

    centre(t) = r + fold(p₀ + v t, side − 2r)        fold: from wall to wall and back, so that speed is constant
    angle(t)  = a₀ + ω t

Each object keeps shape, colour, size and its rank in front of or behind the others for the whole film; it may come
late and leave early. Ground and light stay, noise is fresh in every frame. What is wholly hidden in a frame has no box
there, and comes back under the same identity.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.data.toys.scenes import COLOURS, RADIUS, RGB, SHAPES, distances, ground, slope, stand, truth
from descend.errors import Mistake

TURN = 0.1  # the most that an object turns in a frame, in radians
NOISE = 0.02


@dataclass(frozen=True)
class Films:
    """n films of t frames with up to o objects."""

    x: Tensor
    """Pixels (n, t, 3, s, s) in 0..1."""
    boxes: Tensor
    """x0, y0, x1, y1 of what is visible of each object (n, t, o, 4); 0 where nothing is."""
    ids: Tensor
    """The identity of each object, 0..o−1, −1 where nothing of it is visible (n, t, o)."""
    shape: Tensor
    """Number in SHAPES (n, o)."""
    colour: Tensor
    """Number in COLOURS (n, o)."""

    def __len__(self) -> int:
        return len(self.x)

    @property
    def classes(self) -> Tensor:
        """The shape of each object in each frame, −1 where it is not visible (n, t, o)."""
        return torch.where(self.ids >= 0, self.shape[:, None], -1)


def moving_scenes(
    n: int,
    frames: int,
    side: int,
    random: torch.Generator,
    objects: tuple[int, int] = (2, 4),
    speed: float = 0.03,
    late: float = 0.0,
    radius: tuple[float, float] = RADIUS,
) -> Films:
    """n films. `speed` is the most that an object moves in a frame along each axis, as a share of the side; `late` the
    share of the objects that come after the first frame or leave before the last."""
    least, most = objects
    if not 1 <= least <= most or frames < 1 or n < 1 or side < 8:
        raise Mistake(f"{n} films of {frames} frames, side {side}, objects {least} to {most}: at least 1, 1, 8, 1")
    shape = torch.randint(len(SHAPES), (n, most), generator=random)
    colour = torch.randint(len(COLOURS), (n, most), generator=random)
    there = torch.arange(most) < torch.randint(least, most + 1, (n, 1), generator=random)
    present = there[:, None] & choose_times(n, frames, most, late, random)
    place = move_places(shape, frames, side, random, speed, radius)
    tint = torch.tensor(list(RGB.values()))[colour] + 0.05 * torch.randn(n, most, 3, generator=random)
    back, light = ground(n, side, random), 1 + 0.1 * slope(n, side, random)
    x, boxes, seen = [], [], []
    for t in range(frames):
        d = distances(shape, place[:, t], side).masked_fill(~present[:, t, :, None, None], torch.inf)
        frame = back
        for i in range(most):
            frame = torch.lerp(frame, tint[:, i, :, None, None] * light, (0.5 - d[:, i, None]).clamp(0, 1))
        x.append((frame + NOISE * torch.randn(frame.shape, generator=random)).clamp_(0, 1))
        _, box, visible = truth(d, shape)
        boxes.append(box)
        seen.append(visible)
    ids = torch.where(torch.stack(seen, 1), torch.arange(most), -1)
    return Films(torch.stack(x, 1), torch.stack(boxes, 1), ids, shape, colour)


def move_places(
    shape: Tensor, frames: int, side: int, random: torch.Generator, speed: float, radius: tuple[float, float]
) -> Tensor:
    """Centre x, y, radius and angle of every object in every frame (n, t, o, 4)."""
    n, o = shape.shape
    u = torch.rand(n, o, 7, generator=random)
    r = side * (radius[0] + (radius[1] - radius[0]) * u[..., :1])
    room = side - 2 * r
    t = torch.arange(frames)[:, None, None]
    velocity = side * speed * (2 * u[..., 3:5] - 1)
    centre = r[:, None] + fold(room[:, None] * u[:, None, :, 1:3] + velocity[:, None] * t, room[:, None])
    turning = 2 * torch.pi * u[:, None, :, 5:6] + TURN * (2 * u[:, None, :, 6:7] - 1) * t
    angle = stand(shape)[:, None, :, None] + turning
    return torch.cat([centre, r[:, None].expand(-1, frames, -1, -1), angle], dim=3)


def fold(p: Tensor, room: Tensor) -> Tensor:
    """A point that runs on a line, reflected at 0 and at `room`."""
    return room - (torch.remainder(p, 2 * room) - room).abs()


def choose_times(n: int, frames: int, objects: int, late: float, random: torch.Generator) -> Tensor:
    """Which objects are there in which frames (n, t, o): a share `late` of them from a random frame, or until one."""
    u = torch.rand(n, 1, objects, 3, generator=random)
    t = torch.arange(frames)[:, None]
    cut = (1 + u[..., 1] * max(0, frames - 2)).long()
    part = torch.where(u[..., 2] < 0.5, t >= cut, t < cut)
    return torch.where(u[..., 0] < late, part, True)
