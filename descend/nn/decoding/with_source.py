"""Decoding with a source: an encoder-decoder transformer in the middle of writing.

    once    K_l = H_enc W_l^K,  V_l = H_enc W_l^V            the source's keys and values, of every decoder layer
    step    y ← add_1(y, attention to what is written)       one query; its key and value join the cache
            y ← add_2(y, attention(y W_l^Q, K_l, V_l))
            y ← add_3(y, feed-forward)
            logits = finish(y)

This gives the numbers of the model's forward to rounding, and costs one position a step. Beams of one source share its
keys and values by being copies; they move only when a row changes its source. Dropout is off while it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from descend.nn.attention.multi_head import Attention, attend
from descend.nn.decoding.cache import Cache, Layer
from descend.nn.encoder_decoder import DecoderLayer

ANY_LENGTH = 2**31 - 1
"""The context of a model whose positions have no end."""


class Target(NamedTuple):
    """The decoder's side of a model."""

    embed: Callable[[Tensor, Tensor], Tensor]
    """tokens (b, t) and positions -> (b, t, d)"""
    layers: Sequence[DecoderLayer]
    finish: Callable[[Tensor], Tensor]
    """(b, d) of the last position -> logits (b, v)"""
    bias: Callable[[int, int], Tensor] | None = None
    """(t, s) -> what is added to the scores of the self-attention (1, h, t, s)"""


def project_keys(attn: Attention, x: Tensor) -> Tensor:
    """Keys and values (2, b, h, s, k) of x (b, s, d)."""
    return torch.stack([attn.k(x), attn.v(x)]).unflatten(-1, (-1, attn.head_size)).transpose(2, 3)


def attend_to_kept(attn: Attention, x: Tensor, kv: Tensor | tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
    """Attention from x (b, t, d) to keys and values that are there already: each (b, h, s, k)."""
    q = attn.q(x).unflatten(-1, (-1, attn.head_size))
    k, v = (part.transpose(1, 2) for part in kv)
    return attn.out(attend(q, k, v, mask=mask, scale=attn.scale).flatten(-2))


class SourceCache:
    """Keys and values (2, b, h, s, k) of the source in every layer, and which of them are real: (b, 1, 1, s)."""

    def __init__(self, kv: list[Tensor], mask: Tensor | None):
        self.kv, self.mask = kv, mask
        self.of = torch.arange(kv[0].shape[1], device=kv[0].device)  # the source of each row

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows, in this order."""
        wanted = self.of[rows]
        if torch.equal(wanted, self.of):
            return  # beams changed places within their source
        self.of = wanted
        self.kv = [kv.index_select(1, rows) for kv in self.kv]
        self.mask = None if self.mask is None else self.mask[rows]


class SourceDecoder:
    """What `descend.sampling` writes with, for the sources `memory` (b, s, d), where `real` (b, s) is not padding."""

    def __init__(self, model: nn.Module, target: Target, memory: Tensor, real: Tensor | None, context: int):
        self.model, self.target, self.memory, self.context = model, target, memory, context
        self.seen = None if real is None else real[:, None, None, :]

    @torch.inference_mode()
    def start(self, tokens: Tensor, pad: Tensor, length: int) -> Tensor:
        """Read the beginnings (b, t), one for each source; logits (b, v) after each."""
        if len(tokens) != len(self.memory):
            raise ValueError(f"{len(tokens)} beginnings for {len(self.memory)} sources: give one for each")
        attn = self.target.layers[0].attn
        shape = len(self.target.layers), 2, len(tokens), attn.k.out_features // attn.head_size, length, attn.head_size
        self.cache = Cache(self.memory.new_zeros(shape), pad if pad.any() else None)
        self.source = SourceCache([project_keys(layer.cross, self.memory) for layer in self.target.layers], self.seen)
        return self.read(tokens)

    @torch.inference_mode()
    def step(self, tokens: Tensor) -> Tensor:
        """Read one more token (b,) of each row; logits (b, v) of the token after it."""
        return self.read(tokens[:, None])

    @torch.inference_mode()
    def reorder(self, rows: Tensor) -> None:
        """Go on with these rows, in this order."""
        self.cache.reorder(rows)
        self.source.reorder(rows)

    def read(self, tokens: Tensor) -> Tensor:
        with evaluate_only(self.model):
            y = self.target.embed(tokens, self.cache.positions(tokens.shape[1]))
            rooms = self.cache.extend(tokens.shape[1])
            mask = self.mask(tokens.shape[1], rooms[0].write_mask())
            for layer, room, kv in zip(self.target.layers, rooms, self.source.kv, strict=True):
                y = self.layer(layer, y, room, mask, kv)
            return self.target.finish(y[:, -1])

    def mask(self, t: int, seen: Tensor | None) -> Tensor | None:
        """What the new queries see of the cache, with the bias on the scores."""
        if self.target.bias is None:
            return seen
        bias = self.target.bias(t, self.cache.used)
        return bias if seen is None else bias + seen

    def layer(self, layer: DecoderLayer, y: Tensor, room: Layer, mask: Tensor | None, kv: Tensor) -> Tensor:
        def written(y: Tensor) -> Tensor:
            room.new.copy_(project_keys(layer.attn, y))
            return attend_to_kept(layer.attn, y, (room.k, room.v), mask)

        y = layer.add_1(y, written)
        y = layer.add_2(y, lambda y: attend_to_kept(layer.cross, y, kv, self.source.mask))
        y = layer.add_3(y, layer.mlp)
        return y


@contextmanager
def evaluate_only(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode, and afterwards in the mode that it was in."""
    training = model.training
    if training:
        model.eval()
    try:
        yield
    finally:
        if training:
            model.train()
