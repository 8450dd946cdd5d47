"""What each head adds to the output of multi-head attention: the rows of W^O can be taken apart, head by head.

    Z = [head_1 | .. | head_h] W^O + b = Σ_i head_i W^O_i + b          W^O_i (k × d): the rows of W^O that meet head i

    contribution       head_i W^O_i, one summand
    without head i     Z − head_i W^O_i, which is W^O_i = 0
    norm               ‖W^O_i‖: how loud a head can be at all

Before W^O the heads stand side by side, head 1 in the first k columns; a block-diagonal W^O would keep them there.

Systems: multi-head-attention
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from descend.nn.attention.multi_head import Attention, CausalSelfAttention

MultiHead = Attention | CausalSelfAttention


def output_blocks(attn: MultiHead) -> Tensor:
    """W^O_i (h, k, d)"""
    return attn.out.weight.T.unflatten(0, (attn.heads, -1))


def block_norms(attn: MultiHead) -> Tensor:
    """‖W^O_i‖ (h,), the root of the sum of squares."""
    return output_blocks(attn).flatten(1).norm(dim=1)


def contributions(attn: MultiHead, *inputs: Any) -> Tensor:
    """head_i W^O_i (b, h, t, d) of attn(*inputs); with the bias of W^O they add up to its output."""
    seen: list[Tensor] = []
    hook = attn.out.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    try:
        attn(*inputs)
    finally:
        hook.remove()
    heads = seen[0].unflatten(-1, (attn.heads, -1))
    return torch.einsum("bthk,hkd->bhtd", heads, output_blocks(attn))


@contextmanager
def silence_heads(attn: MultiHead, heads: Collection[int]) -> Iterator[None]:
    """Inside, the layer works without these heads (from 0), in whatever model it stands."""
    keep = torch.ones(attn.heads, 1)
    keep[list(heads)] = 0.0

    def mute(_: nn.Module, given: tuple[Tensor]) -> tuple[Tensor]:
        joined = given[0].unflatten(-1, (attn.heads, -1))
        return ((joined * keep.to(joined)).flatten(-2),)

    hook = attn.out.register_forward_pre_hook(mute)
    try:
        yield
    finally:
        hook.remove()
