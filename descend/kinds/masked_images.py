"""Pre-training recipes of image encoders: say what the hidden patches of an image were (BEiT)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from descend.data.images.digits import Digits
from descend.data.images.hidden_patches import HiddenPatches, Hide, Hiding, hidden_once
from descend.data.images.labelled import Images, Preprocessing
from descend.data.images.source import known
from descend.data.streams.arrays import generator
from descend.data.streams.shards import process
from descend.engine.protocol import Batch, Exhibit, Parts
from descend.errors import Mistake
from descend.kinds.images import ClassifyImages
from descend.kinds.recipe import Recipe
from descend.models.beit import BeitConfig, BeitForMaskedImageModeling
from descend.nn.codebook import Codebook
from descend.nn.patches import patchify, unpatchify
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.masked_image import MaskedImage

LEARNED_FROM = 2000  # images, at most, whose patches make the codebook
SHOWN = 6  # images in the report
GREY = 0.5  # of a hidden patch


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
        loop, batch = self.loop, self.loop.batch or len(splits.train.y)
        torch.manual_seed(loop.seed)
        model = fitted(self.model, prepare.image)
        codes = self.codebook(splits.train, prepare)
        hide = Hide(self.hiding, self.model.patch, codes)
        valid = hidden_once(self.images.held(splits.valid, prepare), hide)
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
                "loss of a guess by frequency": round(guess(valid, self.model.vocab), 3),
                **known(splits),
            },
            save_extra=prepare.save,
            exhibits=lambda: [filled_in(model, codes, valid[0], prepare)],
        )

    @property
    def images(self) -> ClassifyImages:
        """How images are read and augmented."""
        return ClassifyImages(data=self.data, loop=self.loop)

    def codebook(self, train: Images, prepare: Preprocessing) -> Codebook:
        """Learned from training images, always the same."""
        n = len(train.y)
        rows = torch.linspace(0, n - 1, min(n, LEARNED_FROM)).long()
        x = torch.cat([batch["x"] for batch in self.images.held(train.take(rows), prepare)])
        try:
            return Codebook.learn(patchify(x, self.model.patch).flatten(0, 1), self.model.vocab, generator(0))
        except ValueError as error:
            raise Mistake(f"--model.vocab {self.model.vocab}: {error}") from None

    def test(self) -> Iterable[Batch]:
        """The test images, with patches hidden once and for all."""
        splits = self.data.read()
        prepare = Preprocessing.fit(splits)
        hide = Hide(self.hiding, self.model.patch, self.codebook(splits.train, prepare))
        return hidden_once(self.images.held(splits.test, prepare), hide)


def fitted(config: BeitConfig, image: tuple[int, int, int]) -> BeitForMaskedImageModeling:
    """The model, with the sizes that follow from the data."""
    channels, height, width = image
    if height != width:
        raise Mistake(f"the images are {height}×{width}, but this model sees squares; give --data.size {height}")
    try:
        return BeitForMaskedImageModeling(replace(config, channels=channels, side=height, mask_token=True))
    except ValueError as error:
        raise Mistake(f"--model: {error}") from None


def guess(batches: list[Batch], vocab: int) -> float:
    """The mean loss of one who knows only how frequent each visual token is (plus one of each)."""
    y = torch.cat([batch["y"][batch["hide"]] for batch in batches])
    counts = torch.bincount(y, minlength=vocab) + 1
    return float(-(counts / counts.sum()).log()[y].mean())


def filled_in(model: Any, codes: Codebook, batch: Batch, prepare: Preprocessing) -> Exhibit:
    """Images, what the model sees of them, what it puts into the holes, and the same with the true tokens."""
    where = next(model.parameters()).device
    x, hide, y = (batch[name][:SHOWN] for name in ("x", "hide", "y"))
    tokens = y.clone()
    tokens[hide] = model(x.to(where), hide.to(where)).argmax(dim=-1).cpu()
    patch, grid = model.config.patch, model.grid
    seen = patchify(x, patch)

    def image(with_holes_of: Tensor) -> Tensor:
        return unpatchify(torch.where(hide[:, :, None], with_holes_of, seen), patch, grid)

    mean, std = (x.new_tensor(v)[:, None, None] for v in (prepare.mean, prepare.std))
    parts = [x, image(torch.zeros_like(seen)), image(codes.decode(tokens)), image(codes.decode(y))]
    pixels = torch.stack([part * std + mean for part in parts], dim=1)
    pixels[:, 1] = torch.where(image(torch.full_like(seen, torch.nan)).isnan(), GREY, pixels[:, 1])
    flat = pixels.clamp(0, 1).flatten(0, 1)
    shown = flat[:, 0] if flat.shape[1] == 1 else flat.movedim(1, -1)
    captions = ["image", "seen", "filled in", "true tokens"] * len(x)
    return Exhibit(
        "images",
        "Hidden patches filled in",
        {"images": shown.numpy(), "captions": captions},
        "Validation images, best checkpoint. The last one of four is the best that the codebook allows.",
    )
