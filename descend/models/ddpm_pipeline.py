"""DDPM as a pipeline: a U-Net that predicts noise in pixels, and the plan by which it samples.

    x_T ~ N(0, I),   x ← step(x, ε_θ(x, t[, y])) along the plan,   the last x is the image in −1..1

With `classes` in the U-Net the samples can be asked for: its last class then stands for "none", and guidance combines
(1 − γ) ε(none) + γ ε(y) from one doubled batch. Opens and writes diffusers' DDPMPipeline (and, by their common layout,
folders of DDIMPipeline).

Systems: diffusion-unet
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from descend.contracts import Chance, Wish
from descend.models import unet_2d
from descend.models._denoising import choose_plan, guide_by_class
from descend.models.unet_2d import UNet2D, UNet2DConfig
from descend.ops.diffusion.plan import Plan
from descend.ranges import NonNegative
from descend.sampling.diffusion.denoiser import Predict
from descend.sampling.diffusion.samplers import draw
from descend.weights.layout import Layout
from descend.weights.pipeline import Pipeline


@dataclass(frozen=True)
class DDPMConfig:
    """The U-Net, how it samples, and how much a class counts unless asked otherwise."""

    unet: UNet2DConfig = field(default_factory=UNet2DConfig)
    plan: Plan = field(default_factory=Plan)
    guidance: NonNegative = 1.0


class DDPMPipeline(Pipeline):
    """x (b, c, h, w), t (b,), y (b,) or none -> the prediction (b, c, h, w)"""

    Config = DDPMConfig
    kinds: ClassVar = {"unet": (UNet2D,)}
    unet: UNet2D

    def forward(self, x: Tensor, t: Tensor, y: Tensor | None = None) -> Tensor:
        return self.unet(x, t, y)

    @property
    def offers(self) -> frozenset[str]:
        """With classes: which, and how much they count."""
        given = {"classes", "guidance"} if self.unet.config.classes else set()
        return frozenset({"steps", "method"} | given)

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """Images in −1..1."""
        shape = self.shape
        x = chance.normal(*shape)
        predict = self.predictor(chance.count, wish)
        return draw(predict, x, choose_plan(self.plan, wish), lambda: chance.normal(*shape), wish.steps)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of what is denoised: the image itself."""
        c = self.unet.config
        if c.size is None:
            raise ValueError("this U-Net does not say the side of its images (sample_size); set unet.size")
        return c.out, c.size, c.size

    @property
    def image(self) -> tuple[int, int, int]:
        """Channels, height and width of the images."""
        return self.shape

    def predictor(self, count: int, wish: Wish, beside: Tensor | None = None) -> Predict:
        """What a sampler calls: guided by the classes that are asked for, with channels laid beside its input."""
        return guide_by_class(self.unet, count, wish, self.settings.guidance, beside)

    def to_latent(self, x: Tensor) -> Tensor:
        """Images are denoised as they are."""
        return x

    def from_latent(self, z: Tensor) -> Tensor:
        return z


TINY = DDPMConfig(unet=unet_2d.TINY, plan=Plan(method="ddim", steps=3))
TINY_INPUT = unet_2d.TINY_INPUT
LAYOUT = Layout("DDPMPipeline", library="diffusers")
