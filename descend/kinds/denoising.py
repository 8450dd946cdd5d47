"""What recipes of denoisers share: how the error at each time counts, and which images a U-Net can halve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from descend.data.images.labelled import Preprocessing
from descend.errors import Mistake
from descend.losses.diffusion import Weights, min_snr


@dataclass(frozen=True)
class Denoising:
    """What is minimised."""

    weights: Literal["simple", "elbo", "min-snr"] = "simple"
    """Of the error at each time: all alike, as in the variational bound, or less where there is little noise."""

    def choose(self) -> Weights:
        return min_snr() if self.weights == "min-snr" else self.weights


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
