"""Sampling: new examples from noise. The generator of a GAN maps z ~ N(0, I) to x = G(z)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.inference.trained import Trained, load_trained
from descend.models.gan import Generator


@dataclass(frozen=True)
class Sampler:
    """A model that makes examples."""

    trained: Trained
    takes = "nothing: it samples"

    @classmethod
    def open(cls, run: str | Path, checkpoint: str | int = "best") -> Sampler:
        """From a run or a model folder."""
        return cls.read(load_trained(run, checkpoint))

    @classmethod
    def read(cls, trained: Trained) -> Sampler:
        if not isinstance(trained.model, Generator):
            raise Mistake(f"{trained.folder} holds a {trained.kind}, which does not generate samples")
        return cls(trained)

    @torch.no_grad()
    def sample(self, count: int, seed: int = 0) -> Tensor:
        """This many examples (count, outputs); the same seed gives the same ones."""
        if count < 1:
            raise Mistake(f"{count} samples: at least 1")
        noise = torch.randn(count, self.trained.model.config.latent, generator=torch.Generator().manual_seed(seed))
        x: Tensor = self.trained.model(noise.to(self.trained.device))
        return x.cpu()
