"""What a representation learned without labels shows: a map of its vectors, nearest neighbours, and its views."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from descend.contracts import Batch, Exhibit
from descend.data.images.labelled import Preprocessing
from descend.metrics.neighbours import find_nearest
from descend.views.pixels import channels_last

Embed = Callable[[Tensor], Tensor]
QUERIES, NEAREST = 6, 5


@torch.no_grad()
def collect(embed: Embed, batches: Sequence[Batch], known: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Images (n, c, h, w), vectors (n, d) and labels (n) of the known or of the held-out images."""
    chosen = [batch for batch in batches if bool(batch["known"].all()) == known]
    x, y = (torch.cat([batch[name] for batch in chosen]) for name in ("x", "y"))
    return x, torch.cat([embed(batch["x"]).cpu() for batch in chosen]), y


def show_map(embed: Embed, batches: Sequence[Batch], labels: Sequence[str]) -> Exhibit:
    """The two directions in which the vectors of held-out images vary most, by class."""
    _, h, y = collect(embed, batches, known=False)
    centred = h.double() - h.double().mean(0)
    _, s, v = torch.linalg.svd(centred, full_matrices=False)
    xy = centred @ v[:2].T
    share = float(s[:2].square().sum() / s.square().sum().clamp(min=1e-12))
    clouds = {name: xy[y == k].tolist() for k, name in enumerate(labels) if (y == k).any()}
    return Exhibit(
        "points", "Map of the embedding", clouds, f"First two principal components, {share:.0%} of the variance."
    )


def show_neighbours(embed: Embed, batches: Sequence[Batch], prepare: Preprocessing) -> Exhibit:
    """Held-out images, each with the nearest training images by the cosine of their vectors."""
    x, h, _ = collect(embed, batches, known=False)
    others, known, _ = collect(embed, batches, known=True)
    chosen = torch.linspace(0, len(x) - 1, min(QUERIES, len(x))).long()
    rows = find_nearest(h[chosen], known, NEAREST)
    sheet = torch.cat([x[chosen, None], others[rows]], dim=1)
    captions = [f"image {i + 1}, then its nearest in training" for i in range(len(chosen))]
    pixels = np.stack([to_pixels(row, prepare) for row in sheet])
    return Exhibit("sheet", "Nearest neighbours", {"rows": pixels, "captions": captions}, "Best checkpoint.")


def show_views(batches: Sequence[Batch], prepare: Preprocessing) -> Exhibit:
    """Images and the two views of each that validation compares."""
    batch = next(batch for batch in batches if "x1" in batch)
    parts = torch.stack([batch[name][:QUERIES] for name in ("x", "x1", "x2")], dim=1)
    captions = ["image", "view 1", "view 2"] * len(parts)
    return Exhibit("images", "Views", {"images": to_pixels(parts.flatten(0, 1), prepare), "captions": captions})


def to_pixels(x: Tensor, prepare: Preprocessing) -> np.ndarray:
    """Standardized images (n, c, h, w) -> pixels in 0..1, channels last."""
    mean, std = (x.new_tensor(v)[:, None, None] for v in (prepare.mean, prepare.std))
    return channels_last((x * std + mean).clamp(0, 1))
