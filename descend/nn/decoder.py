"""Decoding with a key-value cache: a transformer in the middle of writing.

    start(prompts) -> logits,   step(tokens) -> logits,   reorder(rows)

    x = E[token] + …                               only for the new tokens
    x = block_l(x, cache_l)                        l = 1..depth: their keys and values join the cache
    logits = norm(x_last) Uᵀ                       only for the last position

This is the fast form of a model's forward and gives the same numbers to rounding. A step has little arithmetic, so what
surrounds it counts: the weights are taken out of their modules, whose calls would cost a third of the time, and linear
maps read them at the speed of the memory (`descend.nn.few_rows`). Dropout is off, whatever mode the model is in.

A decoder shares the weights of its model: if they change, it goes on with the new ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.nn.attention import CausalSelfAttention
from descend.nn.cache import Cache, Layer
from descend.nn.few_rows import FewRows
from descend.nn.mlp import MLP


def plain_norm(norm: nn.LayerNorm) -> Callable[[Tensor], Tensor]:
    """The same map without the module around it."""
    shape, weight, bias, eps = norm.normalized_shape, norm.weight.detach(), norm.bias.detach(), norm.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, eps)


def plain_linear(linear: nn.Linear) -> FewRows:
    if type(linear) is not nn.Linear:  # an adapter around it would be lost
        raise ValueError(f"a {type(linear).__name__} cannot be decoded with: merge it into a plain nn.Linear first")
    return FewRows(linear.weight, linear.bias)


class DecodingBlock:
    """y = x + attention(norm(x)),  x' = y + mlp(norm(y)), for the rows x (b·t, d) of the new tokens."""

    def __init__(self, ln_1: nn.LayerNorm, attn: CausalSelfAttention, ln_2: nn.LayerNorm, mlp: MLP):
        self.norm_1, self.norm_2 = plain_norm(ln_1), plain_norm(ln_2)
        self.maps = [plain_linear(m) for m in (attn.qkv, attn.out, mlp.up, mlp.down)]
        self.heads = attn.heads
        self.activation = mlp.activation.forward

    def __call__(self, x: Tensor, layer: Layer) -> Tensor:
        qkv, out, up, down = self.maps
        _, b, h, t, k = layer.new.shape
        y = qkv(self.norm_1(x)).view(b, t, 3, h, k).permute(2, 0, 3, 1, 4)  # (3, b, h, t, k)
        layer.new.copy_(y[1:])
        x = x + out(attend(y[0], layer).reshape(b * t, h * k))
        return x + down(self.activation(up(self.norm_2(x))))


def attend(q: Tensor, layer: Layer) -> Tensor:
    """softmax(Q Kᵀ / √k + M) V, (b, t, h, k). For one query in each of several sequences two products are faster."""
    b, h, t, k = q.shape
    if t > 1 or b == 1:
        return F.scaled_dot_product_attention(q, layer.k, layer.v, layer.mask).transpose(1, 2)
    s = layer.k.shape[2]
    q, nothing = q.reshape(b * h, 1, k).transpose(1, 2), q.new_empty(1, 1, 1)
    scores = torch.baddbmm(nothing, layer.k.view(b * h, s, k), q, beta=0, alpha=1 / math.sqrt(k)).view(b, h, 1, s)
    a = (scores if layer.mask is None else scores + layer.mask).softmax(-1)
    return torch.bmm(a.view(b * h, 1, s), layer.v.view(b * h, s, k)).view(b, 1, h, k)


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
        self.embed, self.blocks, self.norm = embed, blocks, plain_norm(norm)
        self.head = FewRows(unembedding, None)
        self.context = context

    @torch.inference_mode()
    def start(self, tokens: Tensor, pad: Tensor, length: int) -> Tensor:
        """Read the prompts (b, t), whose first `pad[b]` tokens are padding; logits (b, v) after each."""
        heads = self.blocks[0].heads
        shape = len(self.blocks), 2, len(tokens), heads, length, self.head.inputs // heads
        self.cache = Cache(self.head.w.new_zeros(shape), pad if pad.any() else None)
        return self.read(tokens)

    @torch.inference_mode()
    def step(self, tokens: Tensor) -> Tensor:
        """Read one more token (b,) of each row; logits (b, v) of the token after it."""
        return self.read(tokens[:, None])

    @torch.inference_mode()
    def reorder(self, rows: Tensor) -> None:
        """Go on with these rows, in this order."""
        self.cache.reorder(rows)

    def read(self, tokens: Tensor) -> Tensor:
        b, t = tokens.shape
        x = self.embed(tokens, self.cache.positions(t)).reshape(b * t, -1)
        for block, layer in zip(self.blocks, self.cache.extend(t), strict=True):
            x = block(x, layer)
        return self.head(self.norm(x.view(b, t, -1)[:, -1]))
