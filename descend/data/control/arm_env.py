"""The arm in gymnasium: `descend/PickPlace-v0` tells where the cube is, `descend/SeenPickPlace-v0` shows it.

    (s', r, terminated, truncated, info) = step(a),   a ∈ ℝ⁷ in −1..1: joint increments as shares of SPEED, then the
                                                      gripper (−1 closed, 1 open)

The reward is 1 in the step that ends with the cube in its bin, else 0. The same seed and actions give the same episode.

Systems: pick-and-place
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch

from descend.data.control.arm_camera import fixed_camera, render
from descend.data.control.arm_world import ACTIONS, JOINTS, SPEED, ArmWorld, Scene
from descend.data.control.instructions import LONGEST, WORDS, compose
from descend.errors import Mistake

SIDE = 64


class PickPlace(gymnasium.Env[Any, np.ndarray]):
    """Observations are s = [joint angles, gripper, cube position]."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012 (as gymnasium has it)

    def __init__(self, render_mode: str | None = None, pace: int = 2, side: int = 128):
        if render_mode not in (None, "rgb_array"):
            raise Mistake(f"render_mode {render_mode!r}: this environment renders rgb_array")
        self.render_mode, self.camera = render_mode, fixed_camera(side)
        self.world = self.make_world(pace)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (ACTIONS,), np.float32)
        self.observation_space: gymnasium.Space[Any] = state_space(self.world.seen)
        self.scene: Scene | None = None
        self.steps = 0

    def make_world(self, pace: int) -> ArmWorld:
        return ArmWorld(pace=pace)

    def observe(self) -> Any:
        return self.world.state(self.now)[0].numpy()

    @property
    def now(self) -> Scene:
        if self.scene is None:
            raise Mistake("the environment has no scene yet: call reset() first")
        return self.scene

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.scene = self.world.reset([int(self.np_random.integers(2**31))])
        self.steps = 0
        return self.observe(), {}

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        taken = torch.as_tensor(np.asarray(action), dtype=torch.float64)
        if taken.shape != (ACTIONS,) or not bool(torch.isfinite(taken).all()):
            raise Mistake(f"an action is {ACTIONS} finite numbers, not {tuple(taken.shape)}: {taken.tolist()}")
        turn, grip = taken[:JOINTS].clamp(-1, 1) * SPEED, (taken[JOINTS:].clamp(-1, 1) + 1) / 2
        self.scene = self.world.step(self.now, torch.cat([turn, grip])[None])
        self.steps += 1
        done = bool(self.world.succeeded(self.scene)[0])
        return self.observe(), float(done), done, not done and self.steps >= self.world.longest, {"success": done}

    def render(self) -> Any:
        image = render(self.now, self.camera).image[0]
        return (image.permute(1, 2, 0) * 255).round().to(torch.uint8).numpy()


class SeenPickPlace(PickPlace):
    """Two cubes and two bins: observations are an image, joint angles and gripper, and an instruction in words."""

    def __init__(self, render_mode: str | None = None, pace: int = 2, side: int = SIDE):
        super().__init__(render_mode, pace, side)
        longest = (LONGEST + 1) * (max(map(len, WORDS)) + 1)
        self.observation_space = gymnasium.spaces.Dict(
            {
                "image": gymnasium.spaces.Box(0, 255, (side, side, 3), np.uint8),
                "state": state_space(JOINTS + 1),
                "instruction": gymnasium.spaces.Text(longest, charset="abcdefghijklmnopqrstuvwxyz ,"),
            }
        )

    def make_world(self, pace: int) -> ArmWorld:
        return ArmWorld(2, 2, pace)

    def observe(self) -> Any:
        text = compose(self.now, torch.zeros(1, dtype=torch.long))[0]
        state = self.world.state(self.now)[0, : JOINTS + 1].numpy()
        return {"image": self.render(), "state": state, "instruction": text}


def state_space(numbers: int) -> gymnasium.spaces.Box:
    """Angles within two turns, the gripper in 0..1, places within reach."""
    high = np.full(numbers, 7.0, np.float32)
    return gymnasium.spaces.Box(-high, high, dtype=np.float32)
