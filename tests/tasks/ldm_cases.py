"""The case of latent diffusion, for `tests.tasks.cases`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from descend.contracts import Batch, Loss, Task
from descend.models import ldm_pipeline
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.tasks.latent_diffusion import LatentDiffusion, Stage

B = 8


def latent_diffusion() -> tuple[Task, Batch]:
    """Its second stage, in which a scale is measured and codes are kept."""
    model = ldm_pipeline.LDMPipeline(ldm_pipeline.TINY)
    x = torch.randn(12, 1, 8, 8, generator=torch.Generator().manual_seed(0)).double()
    stages = [Stage("autoencoder", "eps", list), Stage("denoiser", "eps", lambda: x.split(5))]
    learners: dict[str, nn.Module] = {"autoencoder": model.vqvae, "denoiser": model.unet}

    def condition(batch: Batch) -> torch.Tensor:
        return torch.where(batch["drop"], 2, batch["y"])

    def autoencode(x: torch.Tensor, noise: torch.Tensor) -> Loss:
        return Loss({"error": (model.vqvae(x, noise) - x).square().mean()})

    task = LatentDiffusion(model, learners, stages, NoiseSchedule(), autoencode, condition)
    batch = {
        "x": x[:B],
        "row": torch.arange(B),
        "y": torch.arange(B) % 2,
        "drop": torch.arange(B) % 4 == 0,
        "stage": torch.ones(B, dtype=torch.long),
        "noise": torch.randn(B, 2, 4, 4).double(),
        "time": torch.rand(B).double(),
    }
    return task, batch


CASES: dict[str, Callable[[], tuple[Task, Batch]]] = {"LatentDiffusion": latent_diffusion}
