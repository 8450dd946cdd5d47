"""Autoencoder recipes: images through a few numbers and back; plain, sparse or denoising."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor, nn

from descend.contracts import Exhibit
from descend.data.images.labelled import Preprocessing, Splits
from descend.engine.parts import Parts
from descend.kinds.generate_images import UNIT, GenerateImages, Learner
from descend.kinds.layerwise import start_autoencoder
from descend.models.autoencoder import Autoencoder, AutoencoderConfig
from descend.nn import init
from descend.nn.corruption import GaussianCorruption, MaskingCorruption, SaltAndPepper
from descend.optim.rules import AdamW
from descend.ranges import NonNegative, Whole
from descend.tasks.autoencode import Autoencode
from descend.views.samples import first_images
from descend.weights.pretrained import Pretrained

LOOKED_AT, LAYER_RATE = 10_000, 3e-3  # images that layers are trained on one by one, and their learning rate

CORRUPTIONS: dict[str, type[nn.Module]] = {
    "gaussian": GaussianCorruption,
    "masking": MaskingCorruption,
    "salt-and-pepper": SaltAndPepper,
}


@dataclass(frozen=True)
class Spoiling:
    """How the input is spoilt; what is wanted back is the clean image."""

    kind: Literal["none", "gaussian", "masking", "salt-and-pepper"] = "none"
    amount: NonNegative = 0.3
    """Standard deviation of Gaussian noise, or the share of spoilt pixels."""

    def build(self) -> nn.Module | None:
        return None if self.kind == "none" else CORRUPTIONS[self.kind](self.amount)


@dataclass(frozen=True)
class AutoencodeImages(GenerateImages):
    """An autoencoder on images in 0..1, without their classes."""

    model: AutoencoderConfig = field(default_factory=AutoencoderConfig)
    optim: AdamW = field(default_factory=AdamW)
    corruption: Spoiling = field(default_factory=Spoiling)
    sparsity: NonNegative = 0.0
    """λ on the activations of the code; 0: none."""
    start: Literal["torch", "he"] = "torch"
    """First weights: torch's U(±1/√n), which shrink a signal to 0.4 of it in every layer of ReLUs, or he: N(0, 2/n)."""
    layerwise: Whole = 0
    """Steps of each layer as a shallow autoencoder before all are trained together; 0: none."""
    scale: ClassVar[tuple[float, float]] = UNIT

    def build(self) -> Parts:
        parts = super().build()
        if self.layerwise:
            splits = self.data.read_unlabelled()
            x = self.prepare(splits).standardize(first_images(splits.train, LOOKED_AT))
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.loop.seed)
                start_autoencoder(cast(Autoencoder, parts.model), x, self.layerwise, LAYER_RATE, self.loop.seed)
        return parts

    def assemble(self, prepare: Preprocessing) -> Learner:
        model = Autoencoder(replace(self.model, image=prepare.image))
        if self.start == "he":
            init.initialize(model, init.he, init.normal_)
        return Learner(Autoencode(model, self.corruption.build(), self.sparsity), model, {"model": self.optim})

    def draw(self, random: torch.Generator, n: int, image: tuple[int, int, int]) -> dict[str, Tensor]:
        """What decides which pixels are spoilt."""
        return {} if self.corruption.kind == "none" else {"u": torch.rand(n, *image, generator=random)}

    def exhibits(self, model: Pretrained, splits: Splits, prepare: Preprocessing) -> list[Exhibit]:
        """Reconstructions beside those of PCA, and a map of the codes."""
        from descend.views.attempts import show_each
        from descend.views.latent import show_latent_map, show_reconstructions

        return show_each(
            {
                "Reconstructions": lambda: show_reconstructions(model, splits, prepare, self.corruption.build()),
                "Map of the codes": lambda: show_latent_map(model, splits, prepare),
            }
        )
