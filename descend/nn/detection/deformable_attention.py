"""Deformable attention: a query looks at a few points of each map instead of at all its pixels.

    x_qlp = r_q + Δ_qlp          Δ = W_Δ q: where to look, around the reference r of the query
    A_q = softmax(W_A q)         over the levels and points of a head
    y_q = W_o [Σ_lp A_qlp V_l(x_qlp)]_heads          V = W_v tokens

Around a point (Deformable DETR's encoder) an offset is counted in pixels of the map: Δ / (W_l, H_l). Around a box it is
a part of the box: ½ Δ (w, h) / P, so that all points start within it. For n queries this costs n · levels · P reads,
and not n · L. At the start the points of head i lie in the direction 2π i / h, one step further each, with equal
weights.

Systems: rt-detr
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from descend.ops.detection.deformable import Grids, sample_bilinear

Sampler = Callable[[Tensor, Grids, Tensor, Tensor], Tensor]


class DeformableAttention(nn.Module):
    """queries (b, n, d) at references (b, n, 1 or levels, 2 or 4), values of maps end to end -> (b, n, d)"""

    def __init__(
        self,
        width: int,
        heads: int,
        levels: int,
        points: int,
        scale: float = 0.5,
        sample: Sampler = sample_bilinear,
    ):
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not a multiple of heads {heads}")
        self.shape, self.scale, self.sample = (heads, levels, points), scale, sample
        self.offsets = nn.Linear(width, 2 * heads * levels * points)
        self.weights = nn.Linear(width, heads * levels * points)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.start()

    def start(self) -> None:
        """Points on rays, equal weights, Xavier's matrices."""
        heads, levels, points = self.shape
        angle = 2 * math.pi * torch.arange(heads) / heads
        ray = torch.stack([angle.cos(), angle.sin()], -1)
        ray = ray / ray.abs().amax(-1, keepdim=True)
        steps = torch.arange(1, points + 1)[:, None] * ray[:, None, None, :].expand(-1, levels, points, -1)
        nn.init.zeros_(self.offsets.weight)
        with torch.no_grad():
            self.offsets.bias.copy_(steps.flatten())
        for layer in (self.weights.weight, self.weights.bias, self.value.bias, self.out.bias):
            nn.init.zeros_(layer)
        nn.init.xavier_uniform_(self.value.weight)
        nn.init.xavier_uniform_(self.out.weight)

    def project(self, tokens: Tensor, real: Tensor | None = None) -> Tensor:
        """V (b, L, h, k) of tokens (b, L, d); 0 where they are padding."""
        values = self.value(tokens)
        values = values if real is None else values.masked_fill(~real[..., None], 0.0)
        return values.unflatten(-1, (self.shape[0], -1))

    def locate(self, x: Tensor, references: Tensor, grids: Grids) -> Tensor:
        """Where to look: (b, n, h, levels, p, 2) as x, y in shares of the image."""
        offsets = self.offsets(x).unflatten(-1, (*self.shape, 2))
        centre = references[:, :, None, :, None, :2]
        if references.shape[-1] == 2:
            sizes = torch.tensor([(columns, rows) for rows, columns in grids], dtype=x.dtype, device=x.device)
            return centre + offsets / sizes[:, None]
        return centre + offsets * (self.scale / self.shape[-1]) * references[:, :, None, :, None, 2:]

    def forward(self, x: Tensor, references: Tensor, values: Tensor, grids: Grids) -> Tensor:
        weights = self.weights(x).unflatten(-1, (self.shape[0], -1)).softmax(-1).unflatten(-1, self.shape[1:])
        return self.out(self.sample(values, grids, self.locate(x, references, grids), weights))
