"""What a model of visual tokens shows: images through tokens and back, and images for captions."""

from __future__ import annotations

from typing import Any

import torch

from descend.contracts import Exhibit, Wish
from descend.data.images.labelled import Preprocessing, Splits
from descend.sampling.chance import PerExample
from descend.views.pixels import channels_last
from descend.views.samples import first_images

SHOWN, EACH = 8, 4


def show_token_images(model: Any, splits: Splits, prepare: Preprocessing) -> Exhibit:
    """Validation images, and what is left of them after a grid of whole numbers."""
    x = prepare.standardize(first_images(splits.valid, SHOWN)).to(next(model.parameters()).device)
    rows = torch.stack([x, model.codes.reconstruct(x)]).cpu()
    pixels = prepare.restore(rows.flatten(0, 1)).unflatten(0, rows.shape[:2])
    h, w = model.config.codes.grid
    content = {"rows": channels_last(pixels), "captions": ["image", f"from {h}×{w} tokens"]}
    note = f"Validation images; a token is one of {model.config.codes.vocab} entries of the codebook."
    return Exhibit("sheet", "Images through tokens and back", content, note)


def show_captions(model: Any, captions: list[str]) -> Exhibit:
    """Drawn images for the first different captions."""
    wanted = list(dict.fromkeys(captions))[:SHOWN]
    chance = PerExample(0, EACH * len(wanted), device=next(model.parameters()).device)
    prompts = tuple(text for text in wanted for _ in range(EACH))
    x = model.generate(chance, Wish(prompts=prompts)).cpu()
    pixels = ((x + 1) / 2).clamp(0, 1).unflatten(0, (len(wanted), EACH))
    content = {"rows": channels_last(pixels), "captions": wanted}
    return Exhibit("sheet", "Images for captions", content, "Captions of validation, images drawn by the model.")
