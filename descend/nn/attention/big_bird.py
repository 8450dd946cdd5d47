"""BigBird attention: blocks of tokens that see a window, the ends and a few random blocks; memory grows with t alone.

    block i sees   {i − w .. i + w}  ∪  {first g, last g}  ∪  {r random others}          w, g, r in blocks
    the first and last g blocks see everything

The keys of a query block are gathered, so there are t · (2w + 1 + 2g + r) · size scores instead of t². Random blocks
are drawn for each head from a seed: the same seed, the same blocks. `ops.attention.patterns` has the same pattern as a
mask. A block that a plan lists twice counts twice in the softmax, as if its keys stood there twice.

Systems: bigbird
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.nn.attention.multi_head import attend
from descend.nn.attention.self_attention import SelfAttention, refuse_causal
from descend.nn.attention.sliding_window import chunk
from descend.ops.attention.patterns import big_bird_blocks, random_blocks
from descend.ops.attention.sparse import neighbours


def big_bird_plan(n: int, radius: int, ends: int, count: int, heads: int, seed: int) -> Tensor:
    """Which blocks each block between the ends looks at: (heads, n − 2 ends, m), −1 for none."""
    known = big_bird_blocks(n, radius, ends)
    index, real = neighbours(known[ends : n - ends])
    near = index.masked_fill(~real, -1).expand(heads, -1, -1)
    return torch.cat([near, random_blocks(known, count, heads, seed)[:, ends : n - ends]], dim=-1)


def gather_blocks(x: Tensor, look: Tensor, size: int) -> Tensor:
    """The listed blocks of keys or values: x (b, n·size, h, k), look (h, rows, m) -> (b·h·rows, m·size, 1, k)"""
    b, _, h, d = x.shape
    blocks = x.unflatten(1, (-1, size)).permute(0, 3, 1, 2, 4)
    n = blocks.shape[2]
    index = torch.arange(h, device=x.device)[:, None, None] * n + look.clamp_min(0)
    chosen = blocks.reshape(b, h * n, size * d).index_select(1, index.flatten())
    return chosen.view(b * h * look.shape[1], look.shape[2] * size, 1, d)


def gather_key_mask(keep: Tensor | None, look: Tensor, size: int, b: int) -> Tensor | None:
    """Which gathered keys count: (b·h·rows, 1, 1, m·size); none if all do."""
    real = look >= 0
    if keep is None and bool(real.all()):
        return None
    keep = look.new_ones(b, int(look.max()) + 1, size, dtype=torch.bool) if keep is None else chunk(keep, size)
    seen = keep[:, look.clamp_min(0)] & real[..., None]  # (b, h, rows, m, size)
    return seen.flatten(3).flatten(0, 2)[:, None, None]


def block_attend(
    q: Tensor, k: Tensor, v: Tensor, look: Tensor, size: int, keep: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    """Attention of each block to the blocks listed for it, and of the ends to all: (b, t, h, k) -> (b, t, h, k).

    `look` (h, rows, m) has a row for each block but those of the two ends, of equal length. `keep` (b, t) is False for
    keys that are padding.
    """
    (b, t, h, _), n, rows = q.shape, -(-q.shape[1] // size), look.shape[1]
    end = (n - rows) // 2 * size
    if keep is None and t % size:
        keep = q.new_ones(b, t, dtype=torch.bool)
    q, k, v = (chunk(x, size).flatten(1, 2) for x in (q, k, v))
    keep = None if keep is None else chunk(keep, size).flatten(1, 2)
    mask = None if keep is None else keep[:, None, None]
    first, last = (attend(x, k, v, mask=mask, dropout=dropout) for x in (q[:, :end], q[:, n * size - end :]))
    inner = q[:, end : n * size - end].unflatten(1, (rows, size)).permute(0, 3, 1, 2, 4).flatten(0, 2)[:, :, None]
    found = attend(
        inner,
        gather_blocks(k, look, size),
        gather_blocks(v, look, size),
        mask=gather_key_mask(keep, look, size, b),
        dropout=dropout,
    )
    middle = found.view(b, h, rows * size, -1).transpose(1, 2)
    return torch.cat([first, middle, last], dim=1)[:, :t]


class BigBirdAttention(SelfAttention):
    """Window, global and random blocks of `size` tokens; the random ones are the same in every call."""

    ends = 1

    def __init__(
        self,
        width: int,
        heads: int,
        size: int,
        count: int = 3,
        radius: int = 1,
        seed: int = 0,
        dropout: float = 0.0,
    ):
        super().__init__(width, heads, dropout=dropout)
        if size < 1 or count < 0 or radius < 0:
            raise ValueError(
                f"blocks of {size} tokens, {count} random, radius {radius}; a size is at least 1, the others 0"
            )
        self.size, self.count, self.radius, self.seed = size, count, radius, seed
        self.plans: dict[int, Tensor] = {}

    def plan(self, t: int) -> Tensor:
        """(heads, rows, m) for t tokens; drawn once for each number of blocks."""
        n = -(-t // self.size)
        if n not in self.plans:
            self.plans[n] = big_bird_plan(n, self.radius, self.ends, self.count, self.heads, self.seed)
        return self.plans[n]

    def mix(self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, causal: bool) -> Tensor:
        refuse_causal(causal, "BigBird")
        if q.shape[1] <= (2 * self.ends + 1) * self.size:  # no more than the ends and one block: all see all
            return super().mix(q, k, v, keep, causal)
        return block_attend(q, k, v, self.plan(q.shape[1]).to(q.device), self.size, keep, self.rate)
