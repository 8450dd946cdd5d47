"""Latent diffusion as a pipeline: an autoencoder, a U-Net on its codes, and the plan by which they sample.

    z_T ~ N(0, I) of k×h/f×w/f,   z ← step(z, ε_θ(z, t[, y])),   image = decoder(z / s)

Without a condition, or with the classes of its U-Net as in `ddpm_pipeline`. Two stages: the autoencoder is trained on
images alone, then the U-Net on the codes s·z. Opens and writes diffusers' LDMPipeline; its folder calls the autoencoder
vqvae, and it may be quantised or not.

Systems: latent-diffusion
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from descend.contracts import Chance, Wish
from descend.models import autoencoder_kl, unet_2d
from descend.models._denoising import choose_plan, guide_by_class
from descend.models.autoencoder_kl import AutoencoderKL, AutoencoderKLConfig
from descend.models.unet_2d import UNet2D, UNet2DConfig
from descend.models.vq_model import VQModel, VQModelConfig
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.prediction import Predicts
from descend.ranges import NonNegative
from descend.sampling.diffusion.denoiser import Predict
from descend.sampling.diffusion.samplers import draw
from descend.weights.layout import Layout
from descend.weights.pipeline import Pipeline


@dataclass(frozen=True)
class LDMConfig:
    """The parts, how they sample, and how much a class counts unless asked otherwise."""

    vqvae: AutoencoderKLConfig | VQModelConfig = field(default_factory=AutoencoderKLConfig)
    unet: UNet2DConfig = field(default_factory=UNet2DConfig)
    plan: Plan = field(default_factory=Plan)
    guidance: NonNegative = 1.0


class LDMPipeline(Pipeline):
    """images (b, c, h, w), t (b,), y (b,) or none -> the prediction at their codes, and the images through the codes"""

    Config = LDMConfig
    kinds: ClassVar = {"vqvae": (AutoencoderKL, VQModel), "unet": (UNet2D,)}
    vqvae: AutoencoderKL | VQModel
    unet: UNet2D

    def forward(self, x: Tensor, t: Tensor, y: Tensor | None = None) -> tuple[Tensor, Tensor]:
        z = self.to_latent(x)
        return self.unet(z, t, y), self.from_latent(z)

    @property
    def offers(self) -> frozenset[str]:
        """With classes: which, and how much they count."""
        given = {"classes", "guidance"} if self.unet.config.classes else set()
        return frozenset({"steps", "method"} | given)

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """Images in −1..1."""
        shape = self.shape
        z = chance.normal(*shape)
        predict = self.predictor(chance.count, wish)
        z = draw(predict, z, choose_plan(self.plan, wish), lambda: chance.normal(*shape), wish.steps)
        return self.from_latent(z)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the code."""
        c = self.unet.config
        side = c.size or self.vqvae.config.size // self.vqvae.config.factor
        return c.out, side, side

    @property
    def image(self) -> tuple[int, int, int]:
        """Channels, height and width of the images."""
        side = self.shape[1] * self.vqvae.config.factor
        return self.vqvae.config.out, side, side

    def predictor(self, count: int, wish: Wish, beside: Tensor | None = None) -> Predict:
        """What a sampler calls: guided by the classes that are asked for, with channels laid beside its input."""
        return guide_by_class(self.unet, count, wish, self.settings.guidance, beside)

    def to_latent(self, x: Tensor) -> Tensor:
        """s·z of images in −1..1, by the mean code."""
        return self.vqvae.to_latent(x)

    def from_latent(self, z: Tensor) -> Tensor:
        """Images of codes."""
        return self.vqvae.from_latent(z)

    @property
    def scale(self) -> float:
        """s: what codes are multiplied with."""
        return self.vqvae.config.scale

    def set_scale(self, scale: float) -> None:
        """Another scale, measured on the data."""
        self.vqvae.config = replace(self.vqvae.config, scale=scale)

    def set_prediction(self, predicts: Predicts) -> None:
        """What the U-Net learns to say: eps, x0 or v."""
        self.set("plan", replace(self.plan, predicts=predicts))


TINY = LDMConfig(
    vqvae=autoencoder_kl.TINY,
    unet=UNet2DConfig(
        size=4, channels=2, out=2, widths=(8, 16), attention=(False, True), blocks=1, head_size=4, groups=4, classes=3
    ),
    plan=Plan(method="ddim", steps=3),
)


def TINY_INPUT() -> tuple[Tensor, Tensor, Tensor]:
    x = unet_2d.TINY_INPUT()[0][:3]
    return x, torch.tensor([1, 30, 900]), torch.tensor([0, 1, 2])


LAYOUT = Layout("LDMPipeline", library="diffusers")
