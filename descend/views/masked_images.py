"""What masked image modelling shows: images, what the model saw of them, and what it filled in."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch, Exhibit
from descend.data.images.labelled import Preprocessing
from descend.nn.codebook import Codebook
from descend.nn.patches import patchify, unpatchify
from descend.views.pixels import channels_last

SHOWN = 6  # images in the report
GREY = 0.5  # of a masked patch


def show_reconstruction(model: Any, codes: Codebook, batch: Batch, prepare: Preprocessing) -> Exhibit:
    """Images, what the model sees of them, what it puts into the holes, and the same with the true tokens."""
    where = next(model.parameters()).device
    x, hide, y = (batch[name][:SHOWN] for name in ("x", "hide", "y"))
    tokens = y.clone()
    tokens[hide] = model(x.to(where), hide.to(where)).argmax(dim=-1).cpu()
    patch, grid = model.config.patch, model.grid
    seen = patchify(x, patch)

    def put(into_holes: Tensor) -> Tensor:
        return unpatchify(torch.where(hide[:, :, None], into_holes, seen), patch, grid)

    mean, std = (x.new_tensor(v)[:, None, None] for v in (prepare.mean, prepare.std))
    parts = [x, put(torch.zeros_like(seen)), put(codes.decode(tokens)), put(codes.decode(y))]
    pixels = torch.stack([part * std + mean for part in parts], dim=1)
    pixels[:, 1] = torch.where(put(torch.full_like(seen, torch.nan)).isnan(), GREY, pixels[:, 1])
    captions = ["image", "visible", "filled in", "true tokens"] * len(x)
    return Exhibit(
        "images",
        "Masked patches filled in",
        {"images": channels_last(pixels.clamp(0, 1).flatten(0, 1)), "captions": captions},
        "Validation images, best checkpoint. The last of each four is the best that the codebook allows.",
    )
