"""Occlusion: cover a patch of the image; how much does the class lose?

    d_rs = p_y(x) − p_y(x with the patch at (r, s) filled)

Positive where the class was seen. All places of all images are one long batch, cut into pieces that fit in memory.

Systems: filter-visualization
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.interpret.layers import answer, evaluation_mode


def list_places(size: int, side: int, stride: int) -> Tensor:
    """Where patches begin along one axis; the last one ends at the edge."""
    first = torch.arange(0, size - side + 1, stride)
    return first if int(first[-1]) == size - side else torch.cat([first, torch.tensor([size - side])])


@torch.no_grad()
def occlusion(
    model: nn.Module,
    x: Tensor,
    y: Tensor | None = None,
    side: int = 4,
    stride: int = 2,
    fill: float = 0.0,
    batch: int = 256,
) -> Tensor:
    """d (b, rows, columns) for images x (b, c, h, w); `fill` is 0 for standardized pixels: their mean."""
    b, _, h, w = x.shape
    if not (0 < side <= min(h, w) and stride > 0):
        raise Mistake(f"a patch of {side} every {stride} pixels does not fit an image of {h}×{w}")
    top, left = list_places(h, side, stride).to(x.device), list_places(w, side, stride).to(x.device)
    rows, columns = (  # (places, size): is this pixel covered?
        (torch.arange(n, device=x.device) - first[:, None]).clamp(-1, side) for n, first in ((h, top), (w, left))
    )
    inside_rows, inside_columns = ((part >= 0) & (part < side) for part in (rows, columns))
    covers = (inside_rows[:, None, :, None] & inside_columns[None, :, None, :]).flatten(0, 1)  # (places, h, w)
    with evaluation_mode(model):
        z, y = answer(model, x, y)
        whole = z.softmax(dim=1).gather(1, y[:, None])[:, 0]
        image, cover = (t.flatten() for t in torch.meshgrid(torch.arange(b), torch.arange(len(covers)), indexing="ij"))
        found = []
        for i, c in zip(image.split(batch), cover.split(batch), strict=True):
            i, c = i.to(x.device), c.to(x.device)
            p = model(x[i].masked_fill(covers[c][:, None], fill)).softmax(dim=1)
            found.append(whole[i] - p.gather(1, y[i][:, None])[:, 0])
    return torch.cat(found).view(b, len(top), len(left))
