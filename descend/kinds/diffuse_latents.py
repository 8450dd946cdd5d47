"""Latent diffusion of images, with or without classes: an autoencoder, then a denoiser of its codes, in one run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import torch
import tyro
from torch import Tensor

from descend.contracts import Batch
from descend.data.images.labelled import Preprocessing, Splits
from descend.data.streams.beside import BesideOnce
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.generate_images import TEST, VALID, GenerateImages
from descend.kinds.latent_diffusion import (
    TWO_STAGES,
    DiffusionStage,
    Examples,
    FirstStage,
    ImagesInOrder,
    Latents,
    check_sides,
    check_stages,
)
from descend.kinds.recipe import describe_batch, fit_batch
from descend.models.ldm_pipeline import LDMConfig, LDMPipeline
from descend.optim.rules import AdamW
from descend.optim.stages import InStages
from descend.ranges import Share


@dataclass(frozen=True)
class DiffuseLatents(GenerateImages):
    """Latent diffusion of images; `--conditional` lets samples be asked for by class."""

    model: LDMConfig = field(default_factory=LDMConfig)
    optim: AdamW = field(default_factory=AdamW)
    schedule: InStages = field(default_factory=InStages)
    first: FirstStage = field(default_factory=FirstStage)
    stages: tyro.conf.Suppress[tuple[DiffusionStage, ...]] = TWO_STAGES
    conditional: bool = False
    """Learn the classes: descend sample RUN --class NAME --guidance 3."""
    drop: Share = 0.1
    """Share of the training examples whose class is hidden."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_stages(self)

    def build(self) -> Parts:
        splits = self.data.read_unlabelled()
        prepare, loop = self.prepare(splits), self.loop
        batch = fit_batch(loop, len(splits.train.y))
        torch.manual_seed(loop.seed)
        pipeline = self.make_pipeline(prepare)
        shared = Latents(self, pipeline, pipeline.vqvae, prepare.image)
        stages = [(stage, self.examples(splits, "train", prepare)) for stage in self.stages]
        none = len(prepare.labels)

        def condition(found: Batch) -> Tensor | None:
            return torch.where(found["drop"], none, found["y"]) if self.conditional else None

        task = shared.task(stages, condition, [pipeline.unet])
        return Parts(
            task=task,
            model=pipeline,
            stream=shared.stream(stages, batch),
            valid=BesideOnce(ImagesInOrder(self.examples(splits, "valid", prepare), loop.batch), shared.draw(), VALID),
            optims=shared.optims(task),
            unit="images",
            units_per_batch=batch,
            facts={
                "data": self.data.source,
                "training images": len(splits.train.y),
                "validation images": len(splits.valid.y),
                "image": "×".join(map(str, prepare.image)),
                "code": "×".join(map(str, shared.code_shape(0))),
                **describe_batch(loop, batch),
            },
            save_extra=prepare.save,
            exhibits=lambda: self.exhibits(pipeline, splits, prepare),
        )

    def make_pipeline(self, prepare: Preprocessing) -> LDMPipeline:
        """For images of this size and these classes."""
        channels, side, width = prepare.image
        c = self.model
        if side != width:
            raise Mistake(f"the images are {side}×{width}, but this model makes squares; give --data.size {side}")
        check_sides(side, len(c.vqvae.widths) + len(c.unet.widths) - 2)
        vae = replace(c.vqvae, channels=channels, out=channels, size=side)
        classes = len(prepare.labels) + 1 if self.conditional else None
        unet = replace(c.unet, size=side // vae.factor, channels=vae.code, out=vae.code, classes=classes)
        try:
            return LDMPipeline(replace(c, vqvae=vae, unet=unet))
        except ValueError as error:
            raise Mistake(f"--model: {error}") from None

    def examples(self, splits: Splits, part: str, prepare: Preprocessing) -> Examples:
        """One part of the data."""
        images = getattr(splits, part)
        rows = torch.arange(len(images.y))
        return Examples(lambda rows: prepare.standardize(images.x[rows]), {"y": images.y}, rows)

    def test(self) -> Iterable[Batch]:
        splits = self.data.read_unlabelled()
        prepare = self.prepare(splits)
        pipeline = self.make_pipeline(prepare)
        shared = Latents(self, pipeline, pipeline.vqvae, prepare.image)
        return BesideOnce(ImagesInOrder(self.examples(splits, "test", prepare), self.loop.batch), shared.draw(), TEST)
