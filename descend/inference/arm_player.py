"""A policy of the arm plays: episodes of its own task, told in words where it reads them, and filmed where asked to.

The task, camera and execution are those of the run's recipe. Of every episode it is told whether it succeeded, after
how many steps, and which cube was grasped; the time of camera and policy is measured for one arm alone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch, Chance, PlansActions
from descend.data.control.arm_camera import fixed_camera
from descend.data.control.arm_world import PAINTS, Scene
from descend.data.control.environments import episode_seed
from descend.data.control.episodes import EpisodeChance, Played, play
from descend.data.control.instructions import aim, compose, understand
from descend.errors import Mistake
from descend.files import read_json
from descend.inference.trained import Trained, load_trained
from descend.kinds.imitation import Demonstrations, ImitateDemonstrations
from descend.kinds.saved import from_json

PLAYED = 3  # first number of a seed's path, as for other policies
FILM = (180, 240)  # height and width
TIMED = 20  # plans that are timed


@dataclass(frozen=True)
class ArmPlayer:
    """A policy, what it was trained on, and how its chunks are executed."""

    trained: Trained
    data: Demonstrations
    execute: Any
    takes = "instructions"

    @classmethod
    def open(cls, run: str | Path, checkpoint: str | int = "best") -> ArmPlayer:
        """From a run."""
        return cls.read(load_trained(run, checkpoint), run)

    @classmethod
    def read(cls, trained: Trained, run: str | Path) -> ArmPlayer:
        if not isinstance(trained.model, PlansActions):
            raise Mistake(f"{trained.folder} holds a {trained.kind}, which moves no arm")
        path = Path(run) / "recipe.json"
        if not path.exists():
            raise Mistake(f"{run} has no recipe.json: it does not say what the policy was trained to do; give a run")
        recipe = from_json(read_json(path).get("values", {}), str(path))
        if not isinstance(recipe, ImitateDemonstrations):
            raise Mistake(f"{path}: values are not those of a recipe that imitates")
        return cls(trained, recipe.data, recipe.execute)

    @property
    def reads(self) -> bool:
        """Whether it is told in words what to do."""
        return self.data.camera is not None

    def plan(self, seen: Batch, chance: Chance) -> Tensor:
        """The next actions (b, T, 7)."""
        found: Tensor = self.trained.model.plan({k: x.to(self.trained.device) for k, x in seen.items()}, chance)
        return found.cpu()

    def start(self, seeds: Sequence[int], instruction: str = "") -> tuple[Scene, list[str]]:
        """The first scenes of episodes, and what each is told. The colours that an instruction names are put on the
        table where they are not there by chance."""
        scene = self.data.world.reset(seeds)
        if not instruction:
            return scene, compose(scene, torch.zeros(len(seeds), dtype=torch.long)) if self.reads else []
        if not self.reads and self.data.task != "sort":
            raise Mistake(f"{instruction!r}: this policy was trained for {self.data.task}, where there is no choice")
        request = understand(instruction)
        if request.bin >= 0 and scene.bins.shape[1] == 1:
            raise Mistake(f"{instruction!r}: there is one bin only; name the cube alone")
        scene = scene.changed(
            paint=bring_colour(scene.paint, request.cube), bin_paint=bring_colour(scene.bin_paint, request.bin)
        )
        return aim(scene, request), [instruction] * len(seeds)

    def play(self, episodes: int = 10, seed: int = 0, instruction: str = "", film: bool = False) -> Played:
        """So many episodes, all at once; with a film the frames of each step."""
        if episodes < 1:
            raise Mistake(f"{episodes} episodes: at least 1")
        seeds = [episode_seed(PLAYED, seed, i) for i in range(episodes)]
        scene, texts = self.start(seeds, instruction)
        watch = fixed_camera(*FILM) if film else None
        return play(self.plan, self.data.senses(), scene, seeds, self.execute, texts if self.reads else (), watch)

    @torch.no_grad()
    def time_stages(self) -> dict[str, float]:
        """Milliseconds of looking and of planning, for one arm: the median of several."""
        senses, scene = self.data.senses(), self.data.world.reset([0])
        tokens, chance = senses.read(scene), EpisodeChance([0])
        took: dict[str, list[float]] = {"observation": [], "policy": []}
        for _ in range(TIMED):
            first = time.perf_counter()
            seen = senses.observe(scene, tokens)
            second = time.perf_counter()
            self.plan(seen, chance)
            took["observation"].append(second - first)
            took["policy"].append(time.perf_counter() - second)
        return {name: 1000 * sorted(times)[TIMED // 2] for name, times in took.items()}


def bring_colour(paint: Tensor, wanted: int) -> Tensor:
    """Colours (b, n) of which one is the wanted: the first thing gets it where none has it."""
    if wanted < 0:
        return paint
    missing = ~(paint == wanted).any(dim=1)
    changed = paint.clone()
    changed[missing, 0] = wanted
    return changed


def name_cube(scene: Scene, row: int) -> str:
    """Which cube was grasped first."""
    first = int(scene.first[row])
    return PAINTS[int(scene.paint[row, first])] if first >= 0 else "none"
