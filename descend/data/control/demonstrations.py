"""Demonstrations: what was seen and what was commanded at every step, and the chunks that a policy learns from.

    row (episode e, time t):   s_t,   a_1..a_T = what leads from θ_t to the commands of t, t + 1, .. t + T − 1

Commands are angles, so a chunk is right from wherever the arm is: while demonstrating, the arm is pushed about a little
(`noise`), and the chunks lead back. After the last command it is held. Images are drawn when they are first needed,
and kept as bytes.

A file of demonstrations is safetensors, nothing is pickled: `state` (e, t, s), `command` (e, t, a), and `image`
(e, t, 3, h, w) of bytes and `tokens` (e, l) where there are any; the header tells the task, pace and words.

Systems: pick-and-place, act-policy
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from descend.contracts import Batch, Stream
from descend.data.control.arm_camera import Camera, render
from descend.data.control.arm_world import JOINTS, ArmWorld, Scene
from descend.data.control.detour import DetourScene, DetourWorld, demonstrate_detour
from descend.data.control.episodes import own_state
from descend.data.control.instructions import FORMS, LONGEST, WORDS, compose
from descend.data.control.scripted import demonstrate
from descend.errors import Mistake
from descend.ops.robotics.execution import to_increments
from descend.seeds import generator
from descend.text.word_table import encode_words

NAMES = ("state", "command", "image", "tokens")


@dataclass
class Recorded:
    """e demonstrations of t steps each."""

    state: Tensor
    """(e, t, s); the first numbers are the angles."""
    command: Tensor
    """(e, t, a): angles after the step, and the gripper."""
    tokens: Tensor | None = None
    """The instruction of each (e, l)."""
    image: Tensor | None = None
    """Bytes (e, t, 3, h, w), where they were recorded or have been drawn."""
    scenes: Scene | None = None
    """The scenes themselves, e · t of them, where images are still to be drawn."""
    camera: Camera | None = None

    def __len__(self) -> int:
        return len(self.state)

    @property
    def steps(self) -> int:
        return self.state.shape[1]

    def part(self, first: int, last: int) -> Recorded:
        """The demonstrations first .. last − 1."""
        cut = lambda x: None if x is None else x[first:last]
        scenes = self.scenes
        if scenes is not None:
            rows = slice(first * self.steps, last * self.steps)
            scenes = type(scenes)(**{name: value[rows] for name, value in vars(scenes).items()})
        return Recorded(
            self.state[first:last], self.command[first:last], cut(self.tokens), cut(self.image), scenes, self.camera
        )

    def rows(self, chunk: int) -> dict[str, Tensor]:
        """One example for each step: state (n, s), chunk (n, T, a), and tokens; `row` is its number."""
        e, t = self.state.shape[:2]
        at = (torch.arange(t)[:, None] + torch.arange(chunk)).clamp(max=t - 1)
        ahead = self.command[:, at].flatten(0, 1).double()  # (n, T, a)
        state = self.state.flatten(0, 1)
        found = {
            "state": state,
            "chunk": to_increments(state[:, :JOINTS].double(), ahead).float(),
            "row": torch.arange(e * t),
        }
        return found | ({} if self.tokens is None else {"tokens": self.tokens.repeat_interleave(t, dim=0)})


class Pictures:
    """The images of demonstrations by the number of their row, drawn when they are first asked for."""

    def __init__(self, recorded: Recorded):
        self.recorded, camera = recorded, recorded.camera
        n = len(recorded) * recorded.steps
        if recorded.image is not None:
            self.pixels, self.drawn = recorded.image.flatten(0, 1), torch.ones(n, dtype=torch.bool)
        else:
            assert camera is not None
            self.pixels = torch.empty(n, 3, camera.height, camera.width, dtype=torch.uint8)
            self.drawn = torch.zeros(n, dtype=torch.bool)

    def take(self, rows: Tensor) -> Tensor:
        """(b, 3, h, w) in 0..1."""
        new = rows[~self.drawn[rows]].unique()
        if len(new):
            scenes, camera = self.recorded.scenes, self.recorded.camera
            assert scenes is not None
            assert camera is not None
            chosen = type(scenes)(**{name: value[new] for name, value in vars(scenes).items()})
            self.pixels[new] = (render(chosen, camera).image * 255).round().to(torch.uint8)
            self.drawn[new] = True
        return self.pixels[rows].float() / 255


class WithPictures:
    """A stream of rows, with their images."""

    def __init__(self, source: Stream, pictures: Pictures):
        self.source, self.pictures = source, pictures

    def __next__(self) -> Batch:
        batch = next(self.source)
        return {**batch, "image": self.pictures.take(batch["row"])}

    def state_dict(self) -> dict[str, Any]:
        return self.source.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.source.load_state_dict(state)


def record(world: ArmWorld, seeds: Sequence[int], noise: float, camera: Camera | None = None) -> Recorded:
    """The scripted demonstrator in the worlds of these seeds; each step pushes the arm by N(0, noise²) radians."""
    scene = world.reset(seeds)
    if isinstance(world, DetourWorld):
        assert isinstance(scene, DetourScene)
        commands = demonstrate_detour(scene, world.longest)
    else:
        commands = demonstrate(world, scene)
    tokens = None
    if camera is not None:
        form = torch.tensor([int(seed) % len(FORMS) for seed in seeds])
        tokens = encode_words(compose(scene, form), WORDS, LONGEST)
    push = torch.stack(
        [torch.randn(commands.shape[1], JOINTS, generator=generator(int(s), 1), dtype=torch.float64) for s in seeds]
    )
    states, scenes = [], []
    for t, command in enumerate(commands.unbind(dim=1)):
        states.append(own_state(scene) if camera else world.state(scene))
        scenes.append(scene)
        turn = command[:, :JOINTS] - scene.theta + noise * push[:, t]
        scene = world.step(scene, torch.cat([turn, command[:, JOINTS:]], dim=-1))
    laid = type(scene)(
        **{name: torch.stack([getattr(s, name) for s in scenes], dim=1).flatten(0, 1) for name in vars(scene)}
    )
    return Recorded(torch.stack(states, dim=1), commands.float(), tokens, None, laid if camera else None, camera)


def write_demonstrations(path: Path, recorded: Recorded, task: str, pace: int) -> None:
    """Everything as one file; images are drawn for it."""
    tensors = {"state": recorded.state, "command": recorded.command}
    if recorded.tokens is not None:
        tensors["tokens"] = recorded.tokens
    if recorded.camera is not None or recorded.image is not None:
        pictures = Pictures(recorded)
        pictures.take(torch.arange(len(recorded) * recorded.steps))
        tensors["image"] = pictures.pixels.unflatten(0, (len(recorded), recorded.steps))
    header = {"task": task, "pace": str(pace), "words": json.dumps(WORDS)}
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, metadata=header)


def read_demonstrations(path: Path) -> tuple[Recorded, dict[str, str]]:
    """Demonstrations from a file, and its header; what is missing or does not fit is named."""
    try:
        with safe_open(path, "pt") as file:
            header = dict(file.metadata() or {})
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except (OSError, SafetensorError) as error:
        raise Mistake(f"{path}: no file of demonstrations (safetensors): {str(error).partition(chr(10))[0]}") from None
    for name in ("state", "command"):
        if name not in found:
            raise Mistake(f"{path}: no tensor {name!r}; it has {', '.join(sorted(found)) or 'none'}")
        if found[name].dim() != 3 or not found[name].is_floating_point():
            raise Mistake(
                f"{path}: {name} must be numbers of shape (episodes, steps, n), not {tuple(found[name].shape)}"
            )
        if not bool(torch.isfinite(found[name]).all()):
            episode = int((~torch.isfinite(found[name])).flatten(1).any(dim=1).nonzero()[0])
            raise Mistake(f"{path}: {name} of episode {episode} has numbers that are not finite; leave it out")
    state, command = found["state"].float(), found["command"].float()
    if state.shape[:2] != command.shape[:2]:
        raise Mistake(
            f"{path}: state is {tuple(state.shape[:2])} and command {tuple(command.shape[:2])} episodes × steps"
        )
    return Recorded(state, command, found.get("tokens"), found.get("image")), header
