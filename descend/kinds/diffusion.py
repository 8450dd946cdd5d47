"""Diffusion models: of images, with a U-Net, and of points in the plane, with a perceptron.

`--conditional.on` lets samples be asked for by class: the condition is dropped from a share of the training examples,
so one network predicts with and without it, and guidance can exaggerate the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from descend.contracts import Exhibit, Wish
from descend.data.images.labelled import Preprocessing, Splits
from descend.errors import Mistake
from descend.kinds.densities import GeneratePoints, Plane, PointSplits
from descend.kinds.generate_images import GenerateImages, Learner
from descend.losses.diffusion import Weights, min_snr
from descend.metrics.modes import Modes
from descend.models.ddpm_pipeline import DDPMConfig, DDPMPipeline
from descend.models.denoiser_mlp import DenoiserConfig, DenoiserMLP
from descend.optim.rules import Adam, AdamW
from descend.ranges import Share
from descend.sampling.chance import PerExample
from descend.tasks.denoise import Denoise, draw_noise
from descend.weights.pretrained import Pretrained

JUDGED = 2000  # points generated to count modes


@dataclass(frozen=True)
class Denoising:
    """What is minimised."""

    weights: Literal["simple", "elbo", "min-snr"] = "simple"
    """Of the error at each time: all alike, as in the variational bound, or less where there is little noise."""

    def choose(self) -> Weights:
        return min_snr() if self.weights == "min-snr" else self.weights


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


def fit_sides(prepare: Preprocessing, levels: int) -> tuple[int, int]:
    """Channels and side of images that a U-Net of so many levels can halve."""
    channels, height, width = prepare.image
    if height != width:
        raise Mistake(f"the images are {height}×{width}, but this model makes squares; give --data.size {height}")
    least = 2 ** (levels - 1)
    if height % least:
        wanted = max(least, height // least * least)
        raise Mistake(
            f"images of {height}×{height} cannot be halved {levels - 1} times; give --data.size {wanted}, or fewer "
            f"levels (--model.unet.widths)"
        )
    return channels, height


def build_pipeline(config: DDPMConfig, prepare: Preprocessing, conditional: bool) -> DDPMPipeline:
    """The model for these images, with a class more than there are ("none") if it is conditional."""
    channels, side = fit_sides(prepare, len(config.unet.widths))
    classes = len(prepare.labels) + 1 if conditional else None
    try:
        unet = replace(config.unet, size=side, channels=channels, out=channels, classes=classes)
        return DDPMPipeline(replace(config, unet=unet))
    except ValueError as error:
        raise Mistake(f"--model: {error}") from None


@dataclass(frozen=True)
class DiffusePoints(GeneratePoints):
    """A diffusion model of points in the plane."""

    model: DenoiserConfig = field(default_factory=DenoiserConfig)
    optim: Any = field(default_factory=Adam)
    denoising: Denoising = field(default_factory=Denoising)

    def assemble(self, points: PointSplits) -> Learner:
        if self.model.inputs != 2 or self.model.classes is not None:
            raise Mistake("--model: points of the plane have 2 inputs and no classes; leave these flags out")
        model, plan = DenoiserMLP(self.model), self.model.plan
        task = Denoise(model, plan.noise, plan.predicts, self.denoising.choose(), judge_samples=self.judge_modes(model))
        return Learner(task, model, {"model": self.optim})

    def draw(self, random: torch.Generator, n: int) -> dict[str, Tensor]:
        """Noise and times."""
        return draw_noise((2,), n, random)

    def judge_modes(self, model: DenoiserMLP) -> Callable[[], dict[str, float]] | None:
        """Modes covered and share of good points, of a mixture."""
        data: Plane = self.data
        if data.path or data.shape not in ("ring", "grid"):
            return None
        judge = Modes(data.density().mixture.mu.float(), data.noise)  # type: ignore[attr-defined]

        def found() -> dict[str, float]:
            device = next(model.parameters()).device
            made = model.generate(PerExample(0, JUDGED, device=device), Wish())
            return {name: float(values.mean()) for name, values in judge(made).items()}

        return found

    def log_density(self, model: Any) -> Callable[[Tensor], Tensor] | None:
        """By the probability flow."""
        return model.flow().log_prob if self.model.plan.noise.shape == "linear" else None

    def exhibits(self, model: Any, points: PointSplits) -> list[Exhibit]:
        """Points, density, the field that is followed at three times, and where starts lead."""
        from descend.views.diffusion import show_fields, show_paths

        plan, shown = self.model.plan, super().exhibits(model, points)
        return [*shown, *show_fields(model, plan, points.box, points.valid), show_paths(model, plan, points.valid)]
