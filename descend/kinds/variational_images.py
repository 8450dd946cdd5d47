"""Recipes of variational autoencoders: a dense, convolutional or flow model, and how the bound is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import torch
from torch import Tensor

from descend.contracts import Batch, Exhibit
from descend.data.images.labelled import Preprocessing, Splits
from descend.data.streams.beside import BesideOnce
from descend.data.streams.ramp import Ramp
from descend.data.streams.shards import process
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.generate_images import TEST, UNIT, GenerateImages, Learner
from descend.losses.variational import bernoulli_nll, gaussian_nll
from descend.models import config_class, make_model
from descend.optim.rules import AdamW
from descend.ranges import NonNegative, Range, Whole
from descend.tasks.variational import Variational
from descend.weights.pretrained import Pretrained

Samples = Annotated[int, Range(int, least=1, most=10**5)]


@dataclass(frozen=True)
class EvidenceBound:
    """How the ELBO is taken."""

    beta: NonNegative = 1.0
    """Weight of the KL; 1 is the VAE. More gives worse reconstructions and a simpler code; too much collapses it."""
    warmup: Whole = 0
    """Steps over which the weight grows from 0."""
    samples: Samples = 1
    """Codes drawn for each image, in training and validation."""
    importance: Samples = 200
    """Importance samples for each test image: the test's nll."""
    binarise: Literal["none", "dynamic", "threshold"] = "none"
    """Pixels to black and white: drawn anew each time with their grey as probability, or cut at ½."""


@dataclass(frozen=True)
class VariationalImages(GenerateImages):
    """A variational autoencoder on images in 0..1."""

    model: Any = field(default_factory=lambda: config_class("vae")())
    """A VAEConfig, ConvVAEConfig or FlowVAEConfig."""
    optim: AdamW = field(default_factory=AdamW)
    bound: EvidenceBound = field(default_factory=EvidenceBound)
    scale: ClassVar[tuple[float, float]] = UNIT

    def assemble(self, prepare: Preprocessing) -> Learner:
        if self.bound.binarise != "none" and self.model.decoder != "bernoulli":
            raise Mistake("--bound.binarise needs --model.decoder bernoulli: it makes pixels of 0 and 1")
        try:
            model = make_model(replace(self.model, image=prepare.image))
        except ValueError as error:
            raise Mistake(f"--model: {error}") from None
        task = Variational(model, decoder_error(self.model), self.bound.beta)
        return Learner(task, model, {"model": self.optim})

    def build(self) -> Parts:
        parts = super().build()
        bound = self.bound
        if bound.warmup:
            grow = partial(grow_weight, beta=bound.beta, examples=bound.warmup * parts.units_per_batch)
            parts.stream = Ramp(parts.stream, "beta", grow, *process())
        parts.facts |= {"pixels": describe_pixels(bound.binarise), "importance samples at test": bound.importance}
        return parts

    def draw(self, random: torch.Generator, n: int, image: tuple[int, int, int], samples: int = 0) -> dict[str, Tensor]:
        """Noise of the codes, and what makes pixels black or white."""
        found = {"eps": torch.randn(n, samples or self.bound.samples, self.model.latent, generator=random)}
        if self.bound.binarise == "dynamic":
            found["u"] = torch.rand(n, *image, generator=random)
        if self.bound.binarise == "threshold":
            found["u"] = torch.full((n, *image), 0.5)
        return found

    def test(self) -> Iterable[Batch]:
        """The test images, each with many importance samples."""
        splits = self.data.read_unlabelled()
        prepare = self.prepare(splits)
        draw = lambda random, n: self.draw(random, n, prepare.image, self.bound.importance)
        return BesideOnce(self.images.held_out(splits.test, prepare), draw, TEST)

    def exhibits(self, model: Pretrained, splits: Splits, prepare: Preprocessing) -> list[Exhibit]:
        """Samples, reconstructions, the map of the codes, walks between images and along units."""
        from descend.views.attempts import show_each
        from descend.views.latent import show_latent_map, show_reconstructions, show_units, show_walks

        return super().exhibits(model, splits, prepare) + show_each(
            {
                "Reconstructions": lambda: show_reconstructions(model, splits, prepare),
                "Map of the codes": lambda: show_latent_map(model, splits, prepare),
                "Walks": lambda: show_walks(model, splits, prepare),
                "Latent units": lambda: show_units(model, splits, prepare),
            }
        )


def decoder_error(config: Any) -> Callable[[Tensor, Tensor], Tensor]:
    """−log p(x|z) of a config's decoder."""
    return bernoulli_nll if config.decoder == "bernoulli" else partial(gaussian_nll, variance=config.variance)


def grow_weight(number: Tensor, beta: float, examples: int) -> Tensor:
    """β min(1, k / examples) of example number k."""
    return beta * (number / examples).clamp(max=1)


def describe_pixels(binarise: str) -> str:
    """As a run tells it."""
    told = {"none": "grey, 0..1", "dynamic": "black and white, drawn anew each time", "threshold": "cut at one half"}
    return told[binarise]
