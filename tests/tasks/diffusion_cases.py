"""Small cases of the diffusion tasks, for `cases.py`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.contracts import Batch, Task
from descend.models import denoiser_mlp, noise_classifier
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.tasks.classify_noisy import ClassifyNoisy
from descend.tasks.denoise import Denoise

B = 8


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def points() -> tuple[Task, Batch]:
    task = Denoise(denoiser_mlp.DenoiserMLP(denoiser_mlp.TINY), NoiseSchedule(), "v", "elbo", none=2)
    batch = {"x": numbers(B, 2), "noise": numbers(B, 2), "time": torch.rand(B), "y": torch.randint(2, (B,))}
    return task, batch | {"drop": torch.arange(B) % 3 == 0}


def noisy_images() -> tuple[Task, Batch]:
    task = ClassifyNoisy(noise_classifier.NoiseClassifier(noise_classifier.TINY), NoiseSchedule())
    image = {"x": numbers(B, 1, 4, 4), "noise": numbers(B, 1, 4, 4)}
    return task, image | {"time": torch.rand(B), "y": torch.randint(3, (B,))}


CASES: dict[str, Callable[[], tuple[Task, Batch]]] = {"ClassifyNoisy": noisy_images, "Denoise": points}
