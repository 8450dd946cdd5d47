"""A decoder that refines boxes: every layer looks around the box before it and corrects it.

    place_l = MLP(b_l)                                       where a query stands, told by its box
    y ← norm(y + attention(y, y))     y ← norm(y + cross(y, b_l, image))     y ← norm(y + mlp(y))
    b_{l+1} = σ(Δ_l(y) + σ⁻¹(b_l)),   logits W_l y + c_l      heads of its own in each layer: auxiliary predictions

`cross` is deformable attention around the box (the original), or attention to all tokens (`AllTokens`, the text's
standard decoder). No gradient passes from a layer's box to the layers before it, so each is trained by its own loss.

More queries can follow that see the first ones and are not seen by them (`beside`): denoising queries. They are decoded
in a second pass, with the contents that the first queries had in each layer, and give what one pass with a mask would.

Systems: rt-detr
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from descend.nn.detection.query_selection import refine
from descend.nn.detection.set_queries import PlacedAttention, ReluLayers
from descend.nn.mlp import MLP
from descend.ops.detection.deformable import Grids


class Crosses(Protocol):
    """How a query looks at the image."""

    def project(self, tokens: Tensor) -> Tensor: ...

    def __call__(self, x: Tensor, references: Tensor, values: Tensor, grids: Grids) -> Tensor: ...


class AllTokens(nn.Module):
    """The text's: every query looks at every token; boxes play no part."""

    def __init__(self, attn: PlacedAttention):
        super().__init__()
        self.attn = attn

    def project(self, tokens: Tensor) -> Tensor:
        return tokens

    def forward(self, x: Tensor, references: Tensor, values: Tensor, grids: Grids) -> Tensor:
        y: Tensor = self.attn(x, values, values)
        return y


class Beside(NamedTuple):
    """Other queries that may be looked at, as they stood before a layer: with and without their places."""

    placed: Tensor
    contents: Tensor


class RefiningLayer(nn.Module):
    """Self-attention, attention to the image around the boxes, MLP: post-norm."""

    def __init__(self, attn: PlacedAttention, cross: nn.Module, mlp: MLP, width: int, dropout: float = 0.0):
        super().__init__()
        self.attn, self.norm_1 = attn, nn.LayerNorm(width)
        self.cross, self.norm_2 = cross, nn.LayerNorm(width)
        self.mlp, self.norm_3 = mlp, nn.LayerNorm(width)
        self.drop = nn.Dropout(dropout)

    def forward(
        self, y: Tensor, place: Tensor, boxes: Tensor, values: Tensor, grids: Grids, seen: Beside, mask: Tensor | None
    ) -> Tensor:
        """`seen` are all queries that may be looked at; `mask` (.., n, seen) as in `attend`."""
        y = self.norm_1(y + self.drop(self.attn(y + place, seen.placed, seen.contents, mask)))
        y = self.norm_2(y + self.drop(self.cross(y + place, boxes[:, :, None], values, grids)))
        return self.norm_3(y + self.drop(self.mlp(y)))


class Refined(NamedTuple):
    """What every layer predicts, and the queries before it."""

    logits: Tensor
    """(layers, b, n, K)"""
    boxes: Tensor
    """cx, cy, w, h in shares of the image (layers, b, n, 4)."""
    before: list[Beside]


class RefiningDecoder(nn.Module):
    """Queries with boxes -> classes and boxes of every layer"""

    def __init__(self, layers: Sequence[RefiningLayer], width: int, classes: int):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.place = ReluLayers((4, 2 * width, width))
        self.classify = nn.ModuleList(nn.Linear(width, classes) for _ in layers)
        self.locate = nn.ModuleList(ReluLayers((width, width, width, 4)) for _ in layers)

    def project(self, tokens: Tensor) -> list[Tensor]:
        """What each layer reads of the image's tokens (b, L, d)."""
        return [layer.cross.project(tokens) for layer in self.layers]  # type: ignore[operator, union-attr]

    def forward(
        self,
        y: Tensor,
        boxes: Tensor,
        values: list[Tensor],
        grids: Grids,
        beside: list[Beside] | None = None,
        mask: Tensor | None = None,
    ) -> Refined:
        """Contents y (b, n, d) and boxes (b, n, 4) in shares; `values` by `project`; `beside` and `mask` for queries
        that see others (`Refined.before`) behind themselves."""
        logits, found, before = [], [], []
        for i, layer in enumerate(self.layers):
            place = self.place(boxes)
            own = Beside(y + place, y)
            before.append(own)
            seen = own if beside is None else Beside(*(torch.cat(p, dim=1) for p in zip(own, beside[i], strict=True)))
            y = layer(y, place, boxes, values[i], grids, seen, mask)
            new = refine(boxes, self.locate[i](y))
            logits.append(self.classify[i](y))
            found.append(new)
            boxes = new.detach()
        return Refined(torch.stack(logits), torch.stack(found), before)
