"""Queries from the image itself: the encoder's best rows, with a first box each, refined layer by layer.

    s = σ(E W_cls)                       scores of all L tokens (L, K)
    I = top-N of max_k s                 of each image
    Q_content = E[I]                     every selected row is its encoder row
    Q_box = σ(MLP(E[I]) + a[I])          a = σ⁻¹(cx, cy, w, h): an anchor at each token, of side 0.05 · 2^level
    refinement   b ← σ(Δ + σ⁻¹(b))       addition in logit space: Δ = 0 leaves a box as it is

MF (26.3) writes Box_final = Box_init + Δ without saying where it is added; this is the original's. The uncertainty that
the selection minimises is |P_loc − P_cls|, how far a score is from the quality of its box; training the scores towards
the IoU (`losses/detection/varifocal.py`) lowers it, the selection itself is a plain top-N. Tokens whose anchor touches
the image's edge (1%) are not used: their row is zeros and their box is the whole image's corner.

Systems: query-selection
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

EDGE = 0.01
SIDE = 0.05


class Anchors(NamedTuple):
    """logits σ⁻¹ of cx, cy, w, h (1, L, 4), and whether an anchor is used (1, L, 1)."""

    logits: Tensor
    used: Tensor


def invert_sigmoid(x: Tensor, eps: float = 1e-5) -> Tensor:
    """σ⁻¹(x) = log(x / (1 − x)), cut off where x is nearer to 0 or 1 than eps."""
    x = x.clamp(0, 1)
    return (x.clamp_min(eps) / (1 - x).clamp_min(eps)).log()


def grid_anchors(grids: Sequence[tuple[int, int]], device: torch.device, side: float = SIDE) -> Anchors:
    """A box at the centre of every pixel of every map, fine to coarse, with sides that double from map to map."""
    found = []
    for level, (rows, columns) in enumerate(grids):
        y, x = ((torch.arange(n, dtype=torch.float32, device=device) + 0.5) / n for n in (rows, columns))
        centre = torch.stack([x.expand(rows, -1), y[:, None].expand(-1, columns)], dim=-1)
        found.append(torch.cat([centre, torch.full_like(centre, side * 2**level)], dim=-1).flatten(0, 1))
    boxes = torch.cat(found)[None]
    used = ((boxes > EDGE) & (boxes < 1 - EDGE)).all(-1, keepdim=True)
    return Anchors(torch.where(used, (boxes / (1 - boxes)).log(), torch.finfo(boxes.dtype).max), used)


def select_queries(scores: Tensor, count: int) -> Tensor:
    """The rows with the `count` best scores of any class: scores (b, L, K) -> (b, count), best first."""
    if count > scores.shape[1]:
        raise ValueError(f"{count} queries from {scores.shape[1]} tokens; give larger images or fewer queries")
    return scores.amax(-1).topk(count, dim=1).indices


def take_rows(x: Tensor, rows: Tensor) -> Tensor:
    """x (b or 1, L, d) at rows (b, n) -> (b, n, d)"""
    index = rows[..., None].expand(-1, -1, x.shape[-1])
    return x.expand(len(rows), -1, -1).gather(1, index)


def refine(boxes: Tensor, delta: Tensor) -> Tensor:
    """σ(Δ + σ⁻¹(b))"""
    return (delta + invert_sigmoid(boxes)).sigmoid()
