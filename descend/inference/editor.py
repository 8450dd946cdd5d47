"""Changing images with a diffusion model: noise and denoise, all of it or where a mask says; and codes of images.

Systems: image-to-image, inpainting
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Generates, HasCodes
from descend.data.images.files import decode
from descend.data.images.labelled import Preprocessing, resize
from descend.errors import Mistake
from descend.inference.images import find_preprocessing
from descend.inference.sampler import Order, Sampler
from descend.inference.trained import Trained, load_trained
from descend.models._denoising import edit_images
from descend.sampling.chance import PerExample
from descend.sampling.interpolation import Between
from descend.weights.pipeline import Pipeline

HALF = 0.5  # of the grey from which a mask says "new"


@dataclass(frozen=True)
class Editor:
    """A diffusion model that changes images."""

    trained: Trained
    prepare: Preprocessing

    @classmethod
    def open(cls, run: str | Path, checkpoint: str | int = "best") -> Editor:
        """From a run or a model folder."""
        trained = load_trained(run, checkpoint)
        prepare = find_preprocessing(trained)
        if not isinstance(trained.model, Pipeline) or prepare is None:
            raise Mistake(f"{run} holds a {trained.kind}, which does not edit images")
        return cls(trained, prepare)

    def edit(
        self,
        image: Tensor,
        order: Order,
        strength: float = 0.8,
        mask: Tensor | None = None,
        depth: Tensor | None = None,
        count: int = 1,
        seed: int = 0,
    ) -> Tensor:
        """Versions (count, c, h, w) of an image (c, h, w) in 0..1; mask and depth are (h, w) in 0..1.

        Args:
            image: what is changed.
            order: prompt or class, guidance, steps, method.
            strength: how much noise: 0 the image itself, through the model's codes, 1 a new one.
            mask: where it is to be new (above a half); all else stays to the pixel.
            depth: a map for a model that draws along one.
            count: how many versions.
            seed: of the random numbers.
        """
        sampler = Sampler(self.trained, self.prepare)
        sampler.check(order)
        self.check_sides(image)
        x = self.prepare.standardize(image[None]).expand(count, -1, -1, -1).to(self.trained.device)
        maps = [None if found is None else found[None, None].to(x) for found in (mask, depth)]
        holes = None if maps[0] is None else (maps[0] > HALF).to(x)
        chance = PerExample(seed, count, device=self.trained.device)
        made = edit_images(self.trained.model, x, chance, sampler.wish(order, count), strength, holes, maps[1])
        found = self.prepare.restore(made.cpu())
        return found if mask is None else torch.where((mask > HALF).expand_as(found), found, image)  # to the bit

    def check_sides(self, image: Tensor) -> None:
        """Sides that the networks can halve."""
        model: Any = self.trained.model
        factor = self.prepare.image[1] // model.shape[1] * 2 ** (len(model.unet.config.widths) - 1)
        height, width = image.shape[-2:]
        if height % factor or width % factor:
            raise Mistake(
                f"the image is {width}×{height}, but both sides must be multiples of {factor}; "
                f"give --size {self.prepare.image[1]}, or cut it"
            )

    def read_image(self, path: str | Path, size: int = 0) -> Tensor:
        """An image file (c, h, w) in 0..1, brought to a side if one is asked for."""
        return read_pixels(path, self.prepare.image[0], size)


def read_pixels(path: str | Path, channels: int, size: int = 0) -> Tensor:
    """A file as (c, h, w) in 0..1."""
    x = torch.from_numpy(decode(path, channels).copy()).float() / 255
    x = x[None] if channels == 1 else x.permute(2, 0, 1)
    return resize(x[None], size, size)[0] if size else x


def interpolate_samples(sampler: Sampler, seeds: tuple[int, int], count: int, order: Order) -> Tensor:
    """Examples on the way from the first of one seed to the first of another, both included."""
    if count < 2:
        raise Mistake(f"-n {count}: at least 2, both ends")
    sampler.check(order)
    device = sampler.trained.device
    chance = Between(PerExample(seeds[0], 1, device=device), PerExample(seeds[1], 1, device=device), count)
    model: Generates = sampler.trained.model
    with torch.no_grad():
        x = model.generate(chance, sampler.wish(order, count)).cpu()
    return x if sampler.prepare is None else sampler.prepare.restore(x)


@dataclass(frozen=True)
class Coder:
    """A model that has codes of images: an autoencoder, or a pipeline with one."""

    trained: Trained
    prepare: Preprocessing

    @classmethod
    def open(cls, run: str | Path, checkpoint: str | int = "best") -> Coder:
        """From a run or a model folder."""
        trained = load_trained(run, checkpoint)
        prepare = find_preprocessing(trained)
        if not isinstance(trained.model, HasCodes) or prepare is None:
            raise Mistake(f"{run} holds a {trained.kind}, which has no codes of images; try: descend embed {run}")
        return cls(trained, prepare)

    @torch.no_grad()
    def encode(self, files: Sequence[str | Path]) -> Tensor:
        """Codes (n, k, h, w) of image files, each brought to the model's size."""
        found = (self.prepare.files([file]).to(self.trained.device) for file in files)
        return torch.cat([self.trained.model.to_latent(x).cpu() for x in found])

    @torch.no_grad()
    def decode(self, codes: Tensor) -> Tensor:
        """Images (n, c, h, w) in 0..1 of codes."""
        try:
            made = self.trained.model.from_latent(codes.float().to(self.trained.device))
        except (RuntimeError, ValueError) as error:
            shape = "×".join(map(str, codes.shape[1:]))
            first = str(error).partition("\n")[0]
            raise Mistake(f"codes of {shape} are not those of this model: {first}") from None
        return self.prepare.restore(made.cpu())
