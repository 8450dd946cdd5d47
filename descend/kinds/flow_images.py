"""Images by flow matching: a U-Net learns the velocity of straight paths from noise to images."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from descend.data.images.labelled import Preprocessing
from descend.errors import Mistake
from descend.kinds.denoising import fit_sides
from descend.kinds.generate_images import GenerateImages, Learner
from descend.models.flow_unet import FlowUNet, FlowUNetConfig
from descend.optim.rules import AdamW
from descend.tasks.denoise import draw_times
from descend.tasks.flow_matching import MatchVelocity


@dataclass(frozen=True)
class MatchImages(GenerateImages):
    """Flow matching on images."""

    model: FlowUNetConfig = field(default_factory=FlowUNetConfig)
    optim: AdamW = field(default_factory=AdamW)

    def assemble(self, prepare: Preprocessing) -> Learner:
        channels, side = fit_sides(prepare, len(self.model.widths))
        try:
            model = FlowUNet(replace(self.model, size=side, channels=channels, out=channels))
        except ValueError as error:
            raise Mistake(f"--model: {error}") from None
        return Learner(MatchVelocity(model), model, {"model": self.optim})

    def draw(self, random: torch.Generator, n: int, image: tuple[int, int, int]) -> dict[str, Tensor]:
        """Noise and times."""
        return {"noise": torch.randn(n, *image, generator=random), "t": draw_times(n, random)}
