"""Causal sliding-window attention in O(T w): the text is cut into blocks of w; a block looks at itself and the last.

    block j of queries  ──▶  blocks j − 1 and j of keys, masked to the w keys that end at the query

Position i sees j with i − w < j ≤ i, as in the released Mistral (the equation: `ops.attention.causal_window`). A text
not longer than the window is plain causal attention. Decoding keeps 2 w keys at most (`descend.nn.decoding.cache`).

Systems: causal-sliding-window
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from descend.nn.attention.multi_head import Attention, attend
from descend.nn.attention.rotary import rotate


def attend_window(q: Tensor, k: Tensor, v: Tensor, window: int) -> Tensor:
    """softmax(Q Kᵀ / √k + M) V with M open for the last `window` keys: q (b, t, h, k), k and v (b, t, kv_heads, k)."""
    t, w = q.shape[1], window
    if torch.compiler.is_exporting():  # a graph has no blocks whose number the length decides: all pairs, masked
        i = torch.arange(t, device=q.device)
        apart = i[:, None] - i
        return attend(q, k, v, mask=((apart >= 0) & (apart < w))[None, None])
    first = attend(q[:, :w], k[:, :w], v[:, :w], causal=True)
    if t <= w:
        return first
    q, k, v = (pad(x, (0, 0, 0, 0, 0, -t % w)) for x in (q, k, v))
    queries = q[:, w:].unflatten(1, (-1, w)).flatten(0, 1)
    keys, values = (x.unfold(1, 2 * w, w).movedim(-1, 2).flatten(0, 1) for x in (k, v))  # a block and the one before
    mask = torch.ones(w, 2 * w, dtype=torch.bool, device=q.device).tril(w).triu(1)
    rest = attend(queries, keys, values, mask=mask[None, None])
    return torch.cat([first, rest.unflatten(0, (len(q), -1)).flatten(1, 2)], 1)[:, :t]


class WindowAttention(Attention):
    """Causal self-attention, without biases, in which a position sees the last `window` positions."""

    def __init__(self, width: int, heads: int, kv_heads: int, head_size: int | None, window: int):
        super().__init__(width, heads, kv_heads, head_size, bias=False)
        if window < 1:
            raise ValueError(f"sliding_window {window}: a position sees itself at least, give 1 or more")
        self.window = window

    def forward(self, x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:  # type: ignore[override]
        q, k, v = (part.unflatten(-1, (-1, self.head_size)) for part in (self.q(x), self.k(x), self.v(x)))
        y = attend_window(rotate(q, *angles), rotate(k, *angles), v, self.window)
        return self.out(y.flatten(-2))
