"""How a diffusion network is told what to make: cross-attention to a sequence, or channels laid beside the image.

    cross-attention   y = W_O softmax(Q Kᵀ/√D) V          Q = W_Q φ(z_t), K = W_K τ(y), V = W_V τ(y), D: size of a head
    block             x ← x + attn(norm(x)),  x ← x + cross(norm(x), τ(y)),  x ← x + W_2 (a ∘ gelu(g))
    concatenation     ε_θ([z_t ; c])                      c: mask, masked image, depth, semantic map, as channels

with [a ; g] = W_1 norm(x). φ(z_t) are the places of a map, τ(y) the tokens of the condition: any sequence, of any
length. There are no positions here: those are in τ. `widen_input` gives a trained network new input channels with zero
weights, so that it starts as it was and learns what to make of them.

Systems: diffusion-conditioning
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.nn.attention.multi_head import attend
from descend.nn.diffusion.blocks import as_map, as_tokens

EPS = 1e-6  # of the group norm before the blocks, in every released model


class ContextAttention(nn.Module):
    """softmax(Q Kᵀ/√D) V of x (b, t, d) with a source (b, s, source width); of x with itself without one."""

    def __init__(self, width: int, heads: int, source: int):
        super().__init__()
        if width % heads:
            raise ValueError(f"{width} channels cannot be split among {heads} heads")
        self.heads = heads
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(source, width, bias=False)
        self.v = nn.Linear(source, width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, source: Tensor | None = None) -> Tensor:
        source = x if source is None else source
        parts = (self.q(x), self.k(source), self.v(source))
        q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in parts)
        return self.out(attend(q, k, v).flatten(-2))


class GatedFeedForward(nn.Module):
    """W_2 (a ∘ gelu(g)),  [a ; g] = W_1 x"""

    def __init__(self, width: int):
        super().__init__()
        self.up = nn.Linear(width, 8 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        a, g = self.up(x).chunk(2, dim=-1)
        return self.down(a * F.gelu(g))


class ConditionedBlock(nn.Module):
    """Self-attention, cross-attention and a feed-forward part, each added to x (b, t, d)."""

    def __init__(self, width: int, heads: int, source: int):
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.attn1 = ContextAttention(width, heads, width)
        self.attn2 = ContextAttention(width, heads, source)
        self.ff = GatedFeedForward(width)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        x = x + self.attn1(self.norm1(x))
        x = x + self.attn2(self.norm2(x), context)
        return x + self.ff(self.norm3(x))


class ConditionedMap(nn.Module):
    """A map (b, c, h, w) whose places look at each other and at the condition (b, s, source width)."""

    def __init__(self, project: tuple[nn.Module, nn.Module], norm: nn.GroupNorm, blocks: list[ConditionedBlock]):
        super().__init__()
        self.norm = norm
        self.proj_in, self.proj_out = project
        self.transformer_blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor, context: Tensor | None) -> Tensor:
        if context is None:
            raise ValueError("this network looks at a condition: give its vectors (b, s, width)")
        tokens = project(self.proj_in, as_tokens(self.norm(x)))
        for block in self.transformer_blocks:
            tokens = block(tokens, context)
        return x + as_map(project(self.proj_out, tokens), x)


def project(layer: nn.Module, tokens: Tensor) -> Tensor:
    """A linear layer, or the same as a convolution of 1×1, as older files have it."""
    weight, bias = layer.weight, layer.bias
    return F.linear(tokens, weight.flatten(1), bias)  # type: ignore[operator, arg-type]


def widen_input(layer: nn.Conv2d, channels: int) -> nn.Conv2d:
    """The same convolution with more input channels, whose weights are 0."""
    if channels < layer.in_channels:
        raise ValueError(f"a network with {layer.in_channels} input channels cannot have only {channels}")
    wide = nn.Conv2d(channels, layer.out_channels, layer.kernel_size, padding=layer.padding)  # type: ignore[arg-type]
    with torch.no_grad():
        wide.weight.zero_()
        wide.weight[:, : layer.in_channels] = layer.weight
        wide.bias.copy_(layer.bias)  # type: ignore[union-attr, arg-type]
    return wide
