"""What a policy of the arm shows: films of episodes, and how they ended."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.contracts import Batch, Chance, Exhibit
from descend.data.control.arm_camera import fixed_camera
from descend.data.control.environments import episode_seed
from descend.data.control.episodes import AverageChunks, Played, RunChunks, Senses, play
from descend.data.control.instructions import compose
from descend.views.pixels import channels_last

SHOWN, HEIGHT, WIDTH, STILLS = 6, 96, 128, 8
REPORTED = 4  # first number of a seed's path, beside those of training, validation, test and playing


def film_episodes(
    plan: Callable[[Batch, Chance], Tensor], senses: Senses, execute: RunChunks | AverageChunks, count: int = SHOWN
) -> tuple[Tensor, list[str], Played]:
    """Frames (count, steps, 3, h, w) of some episodes, a caption for each, and how they ended."""
    seeds = [episode_seed(REPORTED, i) for i in range(count)]
    start = senses.world.reset(seeds)
    told = compose(start, torch.zeros(count, dtype=torch.long)) if senses.encode else [""] * count
    played = play(plan, senses, start, seeds, execute, watch=fixed_camera(HEIGHT, WIDTH))
    good = played.scores["success"] > 0
    captions = [
        f"{text}{': ' if text else ''}{f'done after {steps} steps' if done else 'failed'}"
        for text, done, steps in zip(told, good.tolist(), played.steps.tolist(), strict=True)
    ]
    return torch.stack(played.frames, dim=1), captions, played


def show_episodes_of(
    plan: Callable[[Batch, Chance], Tensor], senses: Senses, execute: RunChunks | AverageChunks
) -> list[Exhibit]:
    """Films, and the same episodes as a sheet of stills."""
    frames, captions, played = film_episodes(plan, senses, execute)
    done = int(played.scores["success"].sum())
    at = torch.linspace(0, frames.shape[1] - 1, min(STILLS, frames.shape[1])).round().long()
    content = {"frames": channels_last(frames), "captions": captions}
    stills = {"rows": channels_last(frames[:3, at]), "captions": captions[:3]}
    note = f"{done} of {len(captions)} episodes succeed, from seeds that no training, validation or test uses."
    return [
        Exhibit("film", "Episodes", content, note),
        Exhibit("sheet", "Step by step", stills, f"After {', '.join(map(str, at.tolist()))} steps."),
    ]
