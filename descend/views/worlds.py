"""Pictures of environments: the classic ones are drawn here, others draw themselves.

CartPole, Pendulum, Acrobot, MountainCar, FrozenLake and CliffWalking need nothing installed. Whatever else renders
`rgb_array` is asked for its own picture; what it needs for that (pygame, MuJoCo, Box2D) is named if it is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from descend.data.control.environments import World, make_env
from descend.errors import Mistake

HEIGHT, WIDTH, FINE = 160, 240, 3  # pixels, and how much larger they are drawn before they are scaled down
PAPER, LINE, DARK, BLUE, RED = (250, 250, 248), (150, 150, 150), (40, 44, 52), (38, 98, 178), (200, 72, 52)
CELLS = {"S": (214, 228, 214), "F": (226, 238, 246), "H": (52, 74, 108), "G": (232, 196, 84)}
RATE = 30.0  # frames in a second, where the environment does not say

Point = tuple[float, float]


class Sketch:
    """A picture of a part of the plane: x to the right and y upwards, in the environment's own units."""

    def __init__(self, middle: Point, across: float, height: int = HEIGHT, width: int = WIDTH):
        self.image = Image.new("RGB", (width * FINE, height * FINE), PAPER)
        self.draw, self.size = ImageDraw.Draw(self.image), (width, height)
        self.scale, self.middle = width * FINE / across, middle

    def place(self, p: Point) -> Point:
        x, y = ((a - m) * self.scale for a, m in zip(p, self.middle, strict=True))
        return x + self.image.width / 2, self.image.height / 2 - y

    def line(self, points: Sequence[Point], colour: tuple[int, int, int], wide: float) -> None:
        self.draw.line([self.place(p) for p in points], colour, max(1, round(wide * self.scale)), "curve")

    def disc(self, p: Point, radius: float, colour: tuple[int, int, int]) -> None:
        (x, y), r = self.place(p), radius * self.scale
        self.draw.ellipse((x - r, y - r, x + r, y + r), colour)

    def box(self, low: Point, high: Point, colour: tuple[int, int, int]) -> None:
        (x0, y1), (x1, y0) = self.place(low), self.place(high)
        self.draw.rectangle((x0, y0, x1, y1), colour)

    def pixels(self) -> np.ndarray:
        """(h, w, 3) of 0..255."""
        return np.asarray(self.image.resize(self.size, Image.Resampling.BOX))


def draw_cart_pole(env: Any) -> np.ndarray:
    """The pole is twice its half length; the track ends where the episode does."""
    x, _, angle, _ = env.state
    sketch, reach = Sketch((0.0, 0.55), 2.2 * env.x_threshold), 2 * env.length
    sketch.line([(-env.x_threshold, 0.0), (env.x_threshold, 0.0)], LINE, 0.02)
    sketch.box((x - 0.25, -0.1), (x + 0.25, 0.15), DARK)
    sketch.line([(x, 0.1), (x + reach * math.sin(angle), 0.1 + reach * math.cos(angle))], RED, 0.09)
    sketch.disc((x, 0.1), 0.05, BLUE)
    return sketch.pixels()


def draw_pendulum(env: Any) -> np.ndarray:
    """Angle 0 is up; the blue line is the torque."""
    angle, torque = float(env.state[0]), float(env.last_u or 0.0)
    sketch = Sketch((0.0, 0.0), 3.6)
    sketch.line([(0.0, 0.0), (-math.sin(angle), math.cos(angle))], RED, 0.16)
    sketch.disc((0.0, 0.0), 0.06, DARK)
    sketch.line([(0.0, -1.15), (0.6 * torque / env.max_torque, -1.15)], BLUE, 0.05)
    return sketch.pixels()


def draw_acrobot(env: Any) -> np.ndarray:
    """Two links from the middle; the tip should rise above the line."""
    first, second = float(env.state[0]), float(env.state[0] + env.state[1])
    knee = (env.LINK_LENGTH_1 * math.sin(first), -env.LINK_LENGTH_1 * math.cos(first))
    tip = (knee[0] + env.LINK_LENGTH_2 * math.sin(second), knee[1] - env.LINK_LENGTH_2 * math.cos(second))
    sketch = Sketch((0.0, 0.0), 6.6)
    sketch.line([(-3.0, 1.0), (3.0, 1.0)], LINE, 0.03)
    sketch.line([(0.0, 0.0), knee, tip], RED, 0.16)
    for joint in ((0.0, 0.0), knee):
        sketch.disc(joint, 0.12, BLUE)
    return sketch.pixels()


def draw_mountain_car(env: Any) -> np.ndarray:
    """The hill is y = 0.45 sin 3x + 0.55; the flag is the goal."""

    def rise(x: float) -> float:
        return 0.45 * math.sin(3 * x) + 0.55

    low, high, x = env.min_position, env.max_position, float(env.state[0])
    sketch = Sketch(((low + high) / 2, 0.6), 1.05 * (high - low))
    sketch.line([(a, rise(a)) for a in np.linspace(low, high, 80).tolist()], LINE, 0.015)
    goal = env.goal_position
    sketch.line([(goal, rise(goal)), (goal, rise(goal) + 0.15)], DARK, 0.012)
    sketch.box((goal, rise(goal) + 0.1), (goal + 0.08, rise(goal) + 0.15), BLUE)
    sketch.disc((x, rise(x) + 0.045), 0.045, RED)
    return sketch.pixels()


def draw_grid(cells: Sequence[str], at: int) -> np.ndarray:
    """Rows of letters: start, free, hole, goal."""
    rows, columns = len(cells), len(cells[0])
    sketch = Sketch((columns / 2, rows / 2), columns * 1.02, width=columns * 40, height=rows * 40)
    for r in range(rows):
        for c in range(columns):
            y = rows - 1 - r
            sketch.box((c + 0.03, y + 0.03), (c + 0.97, y + 0.97), CELLS.get(cells[r][c], PAPER))
    sketch.disc((at % columns + 0.5, rows - 0.5 - at // columns), 0.28, RED)
    return sketch.pixels()


def draw_frozen_lake(env: Any) -> np.ndarray:
    return draw_grid([b"".join(row).decode() for row in env.desc], int(env.s))


def draw_cliff(env: Any) -> np.ndarray:
    cells = np.where(env._cliff, "H", "F")  # gymnasium tells its cliff nowhere else
    cells[-1, 0], cells[-1, -1] = "S", "G"
    return draw_grid(["".join(row) for row in cells.tolist()], int(env.s))


DRAWN: dict[str, Callable[[Any], np.ndarray]] = {
    "CartPole": draw_cart_pole,
    "Pendulum": draw_pendulum,
    "Acrobot": draw_acrobot,
    "MountainCar": draw_mountain_car,
    "MountainCarContinuous": draw_mountain_car,
    "FrozenLake": draw_frozen_lake,
    "FrozenLake8x8": draw_frozen_lake,
    "CliffWalking": draw_cliff,
}


class Filmed(NamedTuple):
    """An episode and its pictures."""

    frames: list[np.ndarray]
    """(h, w, 3) of 0..255: the first state and each that followed."""
    total: float
    """The return."""
    terminated: bool
    """Whether the world ended it, or a time limit."""

    @property
    def steps(self) -> int:
        return len(self.frames) - 1


class Filming:
    """An environment with a camera."""

    def __init__(self, name: str, longest: int = 0):
        spec = gymnasium.registry.get(name)
        kind = spec.name if spec is not None and str(spec.entry_point).startswith("gymnasium.") else ""
        if kind in DRAWN:
            self.world, self.draw = World(name, longest), DRAWN[kind]
        else:
            modes = make_env(name, longest).metadata.get("render_modes") or []
            if "rgb_array" not in modes:
                known = f"it renders {', '.join(map(str, modes))} only" if modes else "it renders nothing"
                raise Mistake(f"{name} gives no pictures: {known}; add the render mode rgb_array")
            self.world, self.draw = World(name, longest, render_mode="rgb_array"), lambda env: env.render()
        self.rate = float(self.world.env.metadata.get("render_fps") or RATE)

    def look(self) -> np.ndarray:
        """The picture of now."""
        try:
            found = np.asarray(self.draw(self.world.env.unwrapped))
        except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
            raise Mistake(f"{self.world.name} cannot be drawn: {' '.join(str(error).split())}") from None
        if found.ndim != 3 or found.shape[2] != 3:
            raise Mistake(f"{self.world.name} gives no pictures: render() returns {found.shape}, not (h, w, 3)")
        return found.astype(np.uint8, copy=False)

    def film(self, act: Callable[[Tensor], Tensor], seed: int) -> Filmed:
        """The episode of this seed; `act` maps observations (1, o) to actions (1)."""
        seen, total, over, terminated = self.world.reset(seed), 0.0, False, False
        frames = [self.look()]
        while not over:
            action = act(torch.from_numpy(seen)[None]).numpy()[0]
            seen, reward, terminated, truncated = self.world.step(action)
            total, over = total + reward, terminated or truncated
            frames.append(self.look())
        return Filmed(frames, total, terminated)


def choose_frames(frames: Sequence[np.ndarray], count: int) -> list[np.ndarray]:
    """At most so many, evenly apart, the first and the last among them."""
    at = np.linspace(0, len(frames) - 1, min(count, len(frames))).round().astype(int)
    return [frames[i] for i in at]
