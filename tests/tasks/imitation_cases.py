"""Small cases of the imitation tasks, for `cases.py`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.contracts import Batch, Task
from descend.losses.regression import squared_error
from descend.models import act, cloning_policy, diffusion_policy
from descend.tasks.imitate import CloneBehaviour, CloneByDenoising, CloneByStyle

B = 8


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def play_nothing(plan: object, seeds: object) -> dict[str, Tensor]:
    raise AssertionError("no episode is played here")


def seen() -> Batch:
    """States, images and chunks of the tiny policies."""
    return {"state": numbers(B, 4), "chunk": numbers(B, 2, 3), "image": torch.rand(B, 3, 8, 16, dtype=torch.float64)}


def regression() -> tuple[Task, Batch]:
    return CloneBehaviour(cloning_policy.CloningPolicy(cloning_policy.TINY), play_nothing, squared_error), seen()


def style() -> tuple[Task, Batch]:
    return CloneByStyle(act.ACT(act.TINY), play_nothing, 0.5), seen() | {"noise": numbers(B, 2)}


def denoising() -> tuple[Task, Batch]:
    model = diffusion_policy.DiffusionPolicy(diffusion_policy.TINY)
    chance = {"noise": numbers(B, 2, 3), "time": torch.rand(B)}
    return CloneByDenoising(model, play_nothing, model.noise), seen() | chance


CASES: dict[str, Callable[[], tuple[Task, Batch]]] = {
    "CloneBehaviour": regression,
    "CloneByDenoising": denoising,
    "CloneByStyle": style,
}
