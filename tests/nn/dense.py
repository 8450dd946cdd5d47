"""What the tests of efficient attention compare with: full attention under a mask, and the memory of a graph."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.ops.attention.dot_product import attention


def qkv(t: int, heads: int = 2, size: int = 4, seed: int = 0) -> list[Tensor]:
    """Queries, keys and values of two texts: (2, t, h, k), float64."""
    x = torch.randn(3, 2, t, heads, size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return list(x)


def dense(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """The equation itself, with its t × t matrix, in the layout (b, t, h, k)."""
    return attention(*(x.transpose(1, 2) for x in (q, k, v)), mask)[0].transpose(1, 2)


def kept_for_backward(call: Callable[..., Tensor], inputs: list[Tensor]) -> int:
    """Numbers in the tensors that the graph keeps, each storage once."""
    kept: dict[int, int] = {}

    def note(x: Tensor) -> Tensor:
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes() // x.element_size()
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        out = call(*(x.float().requires_grad_() for x in inputs))
    assert out.requires_grad
    return sum(kept.values())
