"""Decoding with a key-value cache: a transformer in the middle of writing.

    start(prompts) -> logits,   step(tokens) -> logits,   reorder(rows)

    x = E[token] + …                               only for the new tokens
    x = block_l(x, cache_l)                        l = 1..depth: their keys and values join the cache
    logits = norm(x_last) Uᵀ                       only for the last position

This gives the numbers of the model's forward to rounding. A step has little arithmetic and reads every weight, so on a
CPU it is one call of compiled code (`descend.native`); prompts, other devices and other types take the form below.
Dropout is off, whatever mode the model is in.

A decoder shares the weights of its model: if they change, it uses the new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.native.decoding import GROUP, MOST_ROWS, CodedMap, Map, NativeStep, Norm, Weights, fits_half
from descend.nn.attention.multi_head import Attention, CausalSelfAttention, attend
from descend.nn.attention.rotary import Rope, rotate
from descend.nn.decoding.cache import Cache, Layer
from descend.nn.gated_mlp import GatedMLP
from descend.nn.gelu import GELUTanh
from descend.nn.mlp import MLP
from descend.nn.quantized import QuantizedLinear
from descend.nn.residual import add_parallel, add_post_norm, add_pre_norm

ACTIVATIONS: dict[type[nn.Module], str] = {GELUTanh: "gelu-tanh", nn.GELU: "gelu", nn.SiLU: "silu", nn.ReLU: "relu"}
Angles = tuple[Tensor, Tensor] | None
PIECE = 512
"""A prompt is read in pieces of so many tokens: the room that it needs beside the cache does not grow with it."""
EVEN = 16
"""The room of a cache is a multiple of it, so that the keys of every head begin at whole lines of the memory."""


def read_norm(norm: nn.Module) -> Norm:
    """The numbers of a layer norm or an RMS norm."""
    if isinstance(norm, nn.RMSNorm) and norm.eps is not None:
        return Norm(norm.weight.detach(), None, norm.eps)
    if isinstance(norm, nn.LayerNorm):
        return Norm(norm.weight.detach(), norm.bias.detach(), norm.eps)
    raise ValueError(f"a {type(norm).__name__} cannot be decoded with, only LayerNorm and RMSNorm (with its eps given)")


def read_map(linear: nn.Linear | QuantizedLinear) -> Map:
    """Of codes of 8 bits in groups of 32, or of multiples of it, the codes too; others are written out."""
    if isinstance(linear, QuantizedLinear):
        plain = read_map(linear.linear())
        if linear.bits != 8 or linear.in_features % GROUP or linear.group % GROUP or not fits_half(linear.scales):
            return plain
        steps = linear.scales.detach().repeat_interleave(linear.group // GROUP, 1)[:, : linear.in_features // GROUP]
        return CodedMap.of(plain.w, plain.b, linear.codes, steps)
    if type(linear) is not nn.Linear:  # an adapter around it would be lost
        raise ValueError(f"a {type(linear).__name__} cannot be decoded with: merge it into a plain nn.Linear first")
    return Map(linear.weight.detach(), None if linear.bias is None else linear.bias.detach())


def read_projections(attn: CausalSelfAttention | Attention) -> list[Map]:
    """Q, K and V; where they are one matrix, its thirds."""
    if isinstance(attn, Attention):
        return [read_map(m) for m in (attn.q, attn.k, attn.v)]
    w, b = read_map(attn.qkv)
    return [Map(*part) for part in zip(w.chunk(3), (None,) * 3 if b is None else b.chunk(3), strict=True)]


class DecodingBlock:
    """y = x + attention(norm(x)),  x' = y + mlp(norm(y)), for x (b, t, d) of the new tokens."""

    cached: tuple[int, int, int]
    """What a token leaves in the cache of a layer: tensors, heads, numbers."""
    turned: int
    """How many numbers of a head rotary positions turn."""

    def __init__(self, norm_1: nn.Module, attn: CausalSelfAttention | Attention, norm_2: nn.Module, mlp: nn.Module):
        self.norm_1, self.norm_2, self.mlp = norm_1, norm_2, mlp
        self.q, self.k, self.v = read_projections(attn)
        self.out, self.heads = read_map(attn.out), attn.heads
        self.scale = attn.scale if isinstance(attn, Attention) else None
        self.size = self.turned = len(self.q.w) // attn.heads
        self.kv_heads = len(self.k.w) // self.size
        self.cached = (2, self.kv_heads, self.size)

    def weights(self) -> tuple[Weights, str] | None:
        """The same tensors and the activation's name, as compiled code takes them; None: it has no such block."""
        mlp = self.mlp
        if self.scale or not isinstance(mlp, GatedMLP | MLP) or type(mlp.activation) not in ACTIVATIONS:
            return None
        gate = read_map(mlp.gate) if isinstance(mlp, GatedMLP) else None
        norms, up, down = (read_norm(self.norm_1), read_norm(self.norm_2)), read_map(mlp.up), read_map(mlp.down)
        return Weights(*norms, self.q, self.k, self.v, self.out, gate, up, down), ACTIVATIONS[type(mlp.activation)]

    def attend(self, n: Tensor, layer: Layer, angles: Angles) -> Tensor:
        """Attention of the new tokens to all; their keys and values join the cache."""
        q, k, v = (F.linear(n, *m).unflatten(-1, (-1, self.size)) for m in (self.q, self.k, self.v))  # (b, t, h, k)
        if angles is not None:
            q, k = rotate(q, *angles), rotate(k, *angles)
        layer.new.copy_(torch.stack([k, v]).transpose(2, 3))
        if layer.causal:
            return F.linear(attend(q, k, v, causal=True, scale=self.scale).flatten(-2), *self.out)
        grouped = self.heads != self.kv_heads
        y = F.scaled_dot_product_attention(
            q.transpose(1, 2), layer.k, layer.v, layer.mask, scale=self.scale, enable_gqa=grouped
        )
        return F.linear(y.transpose(1, 2).flatten(-2), *self.out)

    def __call__(self, x: Tensor, layer: Layer, angles: Angles) -> Tensor:
        return self.wire(x, lambda n: self.attend(n, layer, angles))

    def wire(self, x: Tensor, attention: Callable[[Tensor], Tensor]) -> Tensor:
        """The block around its attention, as the model wires it."""
        return add_pre_norm(x, self.norm_1, attention, self.norm_2, self.mlp)


class PostNormBlock(DecodingBlock):
    """y = norm(x + attention(x)),  x' = norm(y + mlp(y))"""

    def weights(self) -> None:
        return None

    def wire(self, x: Tensor, attention: Callable[[Tensor], Tensor]) -> Tensor:
        return add_post_norm(x, self.norm_1, attention, self.norm_2, self.mlp)


class ParallelBlock(DecodingBlock):
    """x' = x + attention(n) + mlp(n),  n = norm(x); the second norm is not used"""

    def weights(self) -> None:
        return None

    def wire(self, x: Tensor, attention: Callable[[Tensor], Tensor]) -> Tensor:
        return add_parallel(x, self.norm_1, attention, self.mlp)


class Ends(NamedTuple):
    """What surrounds the blocks: embed(tokens, positions) before, a norm and the matrix of the logits after."""

    embed: Callable[[Tensor, Tensor], Tensor]
    norm: nn.Module
    unembedding: Tensor
    head: nn.Module | None = None
    """The layer that has this matrix, where it is one of its own."""


class CachedDecoder:
    """What `descend.sampling` writes with; `rope` turns queries and keys, `window` bounds how far back they look."""

    def __init__(
        self,
        ends: Ends,
        blocks: Sequence[DecodingBlock],
        context: int,
        rope: Rope | None = None,
        window: int | None = None,
    ):
        self.ends, self.blocks, self.rope, self.window = ends, blocks, rope, window
        self.trained, self.context = context, context if rope is None else rope.reach(context)
        self.head = ends.unembedding.detach()
        self.native = self.find_native()

    def find_native(self) -> NativeStep | None:
        """The compiled step, where there is one for such blocks."""
        found = [weights for block in self.blocks if (weights := block.weights()) is not None]
        if len(found) < len(self.blocks):
            return None
        parts = [weights for weights, _ in found]
        layer = self.ends.head
        head = read_map(layer) if isinstance(layer, QuantizedLinear) else Map(self.head, None)
        native = NativeStep(parts, read_norm(self.ends.norm), head, self.blocks[0].heads, found[0][1])
        return native if native.usable else None

    @torch.inference_mode()
    def start(self, tokens: Tensor, pad: Tensor, length: int) -> Tensor:
        """Read the prompts (b, t), whose first `pad[b]` tokens are padding; logits (b, v) after each."""
        pieces = self.begin(tokens, self.reserve(len(tokens), length), pad if pad.any() else None)
        for piece in pieces[:-1]:
            self.read(*piece)
        return self.read(*pieces[-1])

    def reserve(self, rows: int, length: int) -> Tensor:
        """A cache for texts of this length, to be filled."""
        parts, heads, size = self.blocks[0].cached
        room = length if self.window is None else min(length, 2 * self.window)
        aligned = (room + EVEN - 1) // EVEN * EVEN
        return self.head.new_empty(len(self.blocks), parts, rows, heads, aligned, size)

    def begin(self, tokens: Tensor, kv: Tensor, pad: Tensor | None = None) -> list[tuple[Tensor, Angles]]:
        """Forget everything; the pieces in which the prompts are to be read, one after the other."""
        self.cache = Cache(kv, pad, self.window)
        size = min(PIECE, self.window or PIECE)
        pieces = tokens.split(size, dim=1)
        angles = self.angles(self.cache.positions(tokens.shape[1]))  # all at once: they may depend on the length
        if angles is None:
            return [(piece, None) for piece in pieces]
        return list(zip(pieces, zip(*(part.split(size, -2) for part in angles), strict=True), strict=True))

    @torch.inference_mode()
    def step(self, tokens: Tensor) -> Tensor:
        """Read one more token (b,) of each row; logits (b, v) of the token after it."""
        if self.native is None or len(tokens) > MOST_ROWS:
            return self.read(tokens[:, None], self.angles(self.cache.positions(1)))
        positions = self.cache.positions(1)
        x = self.ends.embed(tokens[:, None], positions)[:, 0]
        angles = self.angles(positions.expand(len(tokens), 1))
        pair = None if angles is None else (angles[0].contiguous(), angles[1].contiguous())
        used = self.cache.take(1)
        return self.native.step(x.contiguous(), self.cache.kv, used, self.cache.first(), pair)

    @torch.inference_mode()
    def reorder(self, rows: Tensor) -> None:
        """Go on with these rows, in this order."""
        self.cache.reorder(rows)

    def angles(self, positions: Tensor) -> Angles:
        return None if self.rope is None else self.rope.angles(positions, self.blocks[0].turned, self.trained)

    def read(self, tokens: Tensor, angles: Angles) -> Tensor:
        """Logits (b, v) after some more tokens (b, t) of each row."""
        x = self.ends.embed(tokens, self.cache.positions(tokens.shape[1]))
        for block, layer in zip(self.blocks, self.cache.extend(tokens.shape[1]), strict=True):
            x = block(x, layer, angles)
        return F.linear(self.ends.norm(x[:, -1]), self.head)
