"""Decoding with a key-value cache: a transformer in the middle of writing.

    start(prompts) -> logits,   step(tokens) -> logits,   reorder(rows)

    x = E[token] + …                               only for the new tokens
    x = block_l(x, cache_l)                        l = 1..depth: their keys and values join the cache
    logits = norm(x_last) Uᵀ                       only for the last position

This gives the numbers of the model's forward to rounding. A step has little arithmetic and reads every weight, so on a
CPU it is one call of compiled code (`descend.native`); prompts, other devices and other types take the form below.
Dropout is off, whatever mode the model is in.

A decoder shares the weights of its model: if they change, it goes on with the new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.native.decoding import MOST_ROWS, Map, NativeStep, Norm, Weights
from descend.nn.attention import CausalSelfAttention
from descend.nn.cache import Cache, Layer
from descend.nn.gelu import GELUTanh
from descend.nn.mlp import MLP

ACTIVATIONS: dict[type[nn.Module], str] = {GELUTanh: "gelu-tanh", nn.GELU: "gelu", nn.SiLU: "silu", nn.ReLU: "relu"}


def norm_of(norm: nn.LayerNorm) -> Norm:
    return Norm(norm.weight.detach(), norm.bias.detach(), norm.eps)


def map_of(linear: nn.Linear) -> Map:
    if type(linear) is not nn.Linear:  # an adapter around it would be lost
        raise ValueError(f"a {type(linear).__name__} cannot be decoded with: merge it into a plain nn.Linear first")
    return Map(linear.weight.detach(), None if linear.bias is None else linear.bias.detach())


class DecodingBlock:
    """y = x + attention(norm(x)),  x' = y + mlp(norm(y)), for the rows x (b·t, d) of the new tokens."""

    def __init__(self, ln_1: nn.LayerNorm, attn: CausalSelfAttention, ln_2: nn.LayerNorm, mlp: MLP):
        self.norm_1, self.norm_2, self.heads, self.activation = ln_1, ln_2, attn.heads, mlp.activation
        self.qkv, self.out, self.up, self.down = (map_of(m) for m in (attn.qkv, attn.out, mlp.up, mlp.down))

    def weights(self) -> Weights:
        """The same tensors, as compiled code takes them: Q, K and V are thirds of one matrix."""
        w, b = self.qkv.w.chunk(3), (None,) * 3 if self.qkv.b is None else self.qkv.b.chunk(3)
        q, k, v = (Map(*pair) for pair in zip(w, b, strict=True))
        return Weights(norm_of(self.norm_1), norm_of(self.norm_2), q, k, v, self.out, None, self.up, self.down)

    def __call__(self, x: Tensor, layer: Layer) -> Tensor:
        _, b, h, t, k = layer.new.shape
        y = F.linear(self.norm_1(x), *self.qkv).view(b, t, 3, h, k).permute(2, 0, 3, 1, 4)  # (3, b, h, t, k)
        layer.new.copy_(y[1:])
        a = F.scaled_dot_product_attention(y[0], layer.k, layer.v, layer.mask).transpose(1, 2)
        x = x + F.linear(a.reshape(b * t, h * k), *self.out)
        return x + F.linear(self.activation(F.linear(self.norm_2(x), *self.up)), *self.down)


class CachedDecoder:
    """What `descend.sampling` writes with: embedding, blocks, final norm and the matrix that makes logits."""

    def __init__(
        self,
        embed: Callable[[Tensor, Tensor], Tensor],
        blocks: Sequence[DecodingBlock],
        norm: nn.LayerNorm,
        unembedding: Tensor,
        context: int,
    ):
        self.embed, self.blocks, self.norm, self.head = embed, blocks, norm, unembedding.detach()
        self.context = context
        self.native: NativeStep | None = None
        activation = ACTIVATIONS.get(type(blocks[0].activation))
        if activation:
            weights = [block.weights() for block in blocks]
            native = NativeStep(weights, norm_of(norm), Map(self.head, None), blocks[0].heads, activation)
            self.native = native if native.usable else None

    @torch.inference_mode()
    def start(self, tokens: Tensor, pad: Tensor, length: int) -> Tensor:
        """Read the prompts (b, t), whose first `pad[b]` tokens are padding; logits (b, v) after each."""
        heads = self.blocks[0].heads
        shape = len(self.blocks), 2, len(tokens), heads, length, self.head.shape[1] // heads
        self.cache = Cache(self.head.new_zeros(shape), pad if pad.any() else None)
        return self.read(tokens)

    @torch.inference_mode()
    def step(self, tokens: Tensor) -> Tensor:
        """Read one more token (b,) of each row; logits (b, v) of the token after it."""
        if self.native is None or len(tokens) > MOST_ROWS:
            return self.read(tokens[:, None])
        x = self.embed(tokens[:, None], self.cache.positions(1)).reshape(len(tokens), -1)
        used = self.cache.take(1)
        return self.native.step(x, self.cache.kv, used, self.cache.pad)

    @torch.inference_mode()
    def reorder(self, rows: Tensor) -> None:
        """Go on with these rows, in this order."""
        self.cache.reorder(rows)

    def read(self, tokens: Tensor) -> Tensor:
        b, t = tokens.shape
        x = self.embed(tokens, self.cache.positions(t)).reshape(b * t, -1)
        for block, layer in zip(self.blocks, self.cache.extend(t), strict=True):
            x = block(x, layer)
        return F.linear(self.norm(x.view(b, t, -1)[:, -1]), self.head)
