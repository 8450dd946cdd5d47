"""The logit lens: what a language model would say if it stopped after layer l.

x_l (b, t, d)  the residual stream after block l;  x_0 the embedding
p_l = softmax(W_U norm(x_l))         the model's own last norm and unembedding, applied early; p_L is its answer
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from descend.errors import Mistake


class Reads(Protocol):
    """What a decoder says of its end: the last norm, and the matrix of the logits."""

    norm: nn.Module
    unembedding: Tensor


@torch.no_grad()
def logit_lens(model: nn.Module, ends: Reads, tokens: Tensor) -> Tensor:
    """p_l (l, t, v) of one text (1, t), for l = 1..L."""
    seen: list[Tensor] = []
    hooks = [
        block.register_forward_hook(lambda _, __, out: seen.append(out[0] if isinstance(out, tuple) else out))
        for block in find_blocks(model)
    ]
    try:
        model(tokens)
    finally:
        for hook in hooks:
            hook.remove()
    states = torch.stack([x[0] for x in seen])
    return nn.functional.linear(ends.norm(states), ends.unembedding).float().softmax(-1)


def find_blocks(model: Any) -> Sequence[nn.Module]:
    """The blocks of a transformer: its longest list of layers of one kind, not inside another list."""
    lists = [list(part) for part in model.children() if isinstance(part, nn.ModuleList)]
    lists = [blocks for blocks in lists if len({type(block) for block in blocks}) == 1]
    if not lists:
        raise Mistake(f"{type(model).__name__} is no stack of blocks: there is nothing to read between them")
    return max(lists, key=len)
