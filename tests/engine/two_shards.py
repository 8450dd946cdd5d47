"""Half of an attention layer in one process of two: what test_tensor_parallel starts, and what it compares with."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from descend.engine.distributed import join
from descend.engine.tensor_parallel import TensorParallel
from descend.nn.attention.multi_head import Attention
from descend.nn.attention.shards import shard

WIDTH = 16


def make_layer(heads: int, key_heads: int) -> Attention:
    """The same numbers wherever it is made."""
    torch.manual_seed(heads + key_heads)
    return Attention(WIDTH, heads, key_heads, head_size=4).double()


def draw_input() -> Tensor:
    return torch.randn(2, 5, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def main(args: list[str]) -> None:
    torch.set_num_threads(1)
    where, world = Path(args[0]), join()
    for key_heads in (8, 1):
        part = shard(make_layer(8, key_heads), world.rank, world.size)
        layer, x = TensorParallel(part), draw_input().requires_grad_()
        y = layer(x, lambda shared, part=part: part(shared, causal=True))  # type: ignore[misc]
        y.square().sum().backward()
        found = {"y": y.detach(), "x": x.grad, "q": part.q.weight.grad, "k": part.k.weight.grad}
        save_file(
            {n: t.contiguous() for n, t in found.items() if t is not None},
            where / f"{key_heads}-{world.rank}.safetensors",
        )
