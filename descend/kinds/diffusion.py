"""Diffusion models of images, with a U-Net.

`--conditional.on` lets samples be asked for by class: the condition is dropped from a share of the training examples,
so one network predicts with and without it, and guidance can exaggerate the difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.data.images.labelled import Preprocessing, Splits
from descend.errors import Mistake
from descend.kinds.denoising import Denoising, fit_sides
from descend.kinds.generate_images import GenerateImages, Learner
from descend.models.ddpm_pipeline import DDPMConfig, DDPMPipeline
from descend.optim.rules import AdamW
from descend.ranges import Share
from descend.tasks.denoise import Denoise, draw_noise
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class Conditional:
    """Samples by class."""

    on: bool = False
    """Learn the classes, so that samples can be asked for: descend sample RUN --class NAME --guidance 3."""
    drop: Share = 0.15
    """Share of the training examples whose class is hidden, so that guidance has something to compare with."""


@dataclass(frozen=True)
class DiffuseImages(GenerateImages):
    """A diffusion model of images."""

    model: DDPMConfig = field(default_factory=DDPMConfig)
    optim: AdamW = field(default_factory=AdamW)
    denoising: Denoising = field(default_factory=Denoising)
    conditional: Conditional = field(default_factory=Conditional)

    def assemble(self, prepare: Preprocessing) -> Learner:
        model = build_pipeline(self.model, prepare, self.conditional.on)
        none = len(prepare.labels) if self.conditional.on else None
        plan = self.model.plan
        task = Denoise(model, plan.noise, plan.predicts, self.denoising.choose(), none)
        return Learner(task, model, {"model": self.optim})

    def draw(self, random: torch.Generator, n: int, image: tuple[int, int, int]) -> dict[str, Tensor]:
        """Noise, times and dropped classes."""
        return draw_noise(image, n, random, self.conditional.drop if self.conditional.on else None)

    def exhibits(self, model: Pretrained, splits: Splits, prepare: Preprocessing) -> list[Exhibit]:
        """Samples and the nearest training images, a film of denoising, and how images drown in noise."""
        from descend.views.attempts import show_each
        from descend.views.diffusion import show_errors, show_film, show_noising

        assert isinstance(model, DDPMPipeline)
        return super().exhibits(model, splits, prepare) + show_each(
            {
                "Denoising": lambda: show_film(model, prepare),
                "Noising": lambda: show_noising(splits, prepare, self.model.plan.noise),
                "Error by noise": lambda: show_errors(model, splits, prepare),
            }
        )


def build_pipeline(config: DDPMConfig, prepare: Preprocessing, conditional: bool) -> DDPMPipeline:
    """The model for these images, with a class more than there are ("none") if it is conditional."""
    channels, side = fit_sides(prepare, len(config.unet.widths))
    classes = len(prepare.labels) + 1 if conditional else None
    try:
        unet = replace(config.unet, size=side, channels=channels, out=channels, classes=classes)
        return DDPMPipeline(replace(config, unet=unet))
    except ValueError as error:
        raise Mistake(f"--model: {error}") from None
