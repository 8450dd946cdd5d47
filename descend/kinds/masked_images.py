"""Pre-training recipes of image encoders: say what the hidden patches of an image were (BEiT)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from descend.contracts import Batch
from descend.data.images.digits import Digits
from descend.data.images.hidden_patches import HiddenPatches, Hide, Hiding, hidden_once
from descend.data.images.labelled import Images, Preprocessing
from descend.data.images.source import describe_classes
from descend.data.streams.arrays import generator
from descend.data.streams.shards import process
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.images import ClassifyImages
from descend.kinds.recipe import Recipe, describe_batch, fit_batch
from descend.models.beit import BeitConfig, BeitForMaskedImageModeling
from descend.nn.codebook import Codebook
from descend.nn.patches import patchify
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.masked_image import MaskedImage
from descend.views.masked_images import show_reconstruction

LEARNED_FROM = 2000  # images, at most, whose patches make the codebook


@dataclass(frozen=True)
class MaskedImages(Recipe):
    """A BEiT on images without their classes; --start.path of a classifying recipe then begins with it."""

    model: BeitConfig = field(default_factory=BeitConfig)
    data: Any = field(default_factory=Digits)
    hiding: Hiding = field(default_factory=Hiding)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)

    def build(self) -> Parts:
        splits = self.data.read()
        prepare = Preprocessing.fit(splits)
        loop, batch = self.loop, fit_batch(self.loop, len(splits.train.y))
        torch.manual_seed(loop.seed)
        model = build_model(self.model, prepare.image)
        codes = self.codebook(splits.train, prepare)
        hide = Hide(self.hiding, self.model.patch, codes)
        valid = hidden_once(self.images.held_out(splits.valid, prepare), hide)
        return Parts(
            task=MaskedImage(model),
            model=model,
            stream=HiddenPatches(self.images.stream(splits.train, prepare, batch), hide, loop.seed, *process()),
            valid=valid,
            optims={"model": self.optim},
            unit="images",
            units_per_batch=batch,
            facts={
                "data": self.data.source,
                "training images": len(splits.train.y),
                "validation images": len(splits.valid.y),
                "image": "×".join(map(str, prepare.image)),
                "patches": model.grid[0] * model.grid[1],
                "visual tokens": self.model.vocab,
                "loss of a guess by frequency": round(guess_loss(valid, self.model.vocab), 3),
                **describe_classes(splits),
                **describe_batch(loop, batch),
            },
            save_extra=prepare.save,
            exhibits=lambda: [show_reconstruction(model, codes, valid[0], prepare)],
        )

    @property
    def images(self) -> ClassifyImages:
        """How images are read and augmented."""
        return ClassifyImages(data=self.data, loop=self.loop)

    def codebook(self, train: Images, prepare: Preprocessing) -> Codebook:
        """Learned from training images, always the same."""
        n = len(train.y)
        rows = torch.linspace(0, n - 1, min(n, LEARNED_FROM)).long()
        x = torch.cat([batch["x"] for batch in self.images.held_out(train.take(rows), prepare)])
        try:
            return Codebook.learn(patchify(x, self.model.patch).flatten(0, 1), self.model.vocab, generator(0))
        except ValueError as error:
            raise Mistake(f"--model.vocab {self.model.vocab}: {error}") from None

    def files(self) -> dict[str, Path]:
        """As for images with classes."""
        return self.images.files()

    def packages(self) -> tuple[str, ...]:
        """As for images with classes."""
        return self.images.packages()

    def test(self) -> Iterable[Batch]:
        """The test images, with patches hidden once and for all."""
        splits = self.data.read()
        prepare = Preprocessing.fit(splits)
        hide = Hide(self.hiding, self.model.patch, self.codebook(splits.train, prepare))
        return hidden_once(self.images.held_out(splits.test, prepare), hide)


def build_model(config: BeitConfig, image: tuple[int, int, int]) -> BeitForMaskedImageModeling:
    """The model, with the sizes that follow from the data."""
    channels, height, width = image
    if height != width:
        raise Mistake(f"the images are {height}×{width}, but this model needs squares; give --data.size {height}")
    try:
        return BeitForMaskedImageModeling(replace(config, channels=channels, side=height, mask_token=True))
    except ValueError as error:
        raise Mistake(f"--model: {error}") from None


def guess_loss(batches: list[Batch], vocab: int) -> float:
    """The mean loss of one who knows only how frequent each visual token is (plus one of each)."""
    y = torch.cat([batch["y"][batch["hide"]] for batch in batches])
    counts = torch.bincount(y, minlength=vocab) + 1
    return float(-(counts / counts.sum()).log()[y].mean())
