"""What a translator shows: sources, what it makes of them, and what they should become."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.views.pixels import channels_last


def show_translations(columns: dict[str, Tensor], note: str) -> Exhibit:
    """Name -> images (n, c, h, w) in −1..1: one row for each example, one column for each name."""
    images = torch.stack([(x.cpu().clamp(-1, 1) + 1) / 2 for x in columns.values()], dim=1).flatten(0, 1)
    rows = len(next(iter(columns.values())))
    content = {"images": channels_last(images), "captions": [*columns] * rows}
    return Exhibit("images", "Translations", content, note)
