"""One attention head that shows its weights: the layer of the books before heads are split and mixed.

    Q = X W^Q + b^Q,  K = X W^K + b^K,  V = X W^V + b^V            b = 0 in VOM and S940
    Z = softmax(Q Kᵀ / √d_k) V              `scale` 1 gives DLN's first form, softmax(Q Kᵀ) V
    tied      W^Q = W^K: the scores are symmetric, s_ij = s_ji; "ate" cannot look at "fish" more than it is looked at

W^Q, W^K: d -> d_k, W^V: d -> d_v; 2 d d_k + d d_v weights. No output projection: `nn.attention.multi_head` has that.

Systems: unscaled-self-attention, qkv-soft-attention
"""

from __future__ import annotations

import math

from torch import Tensor, nn

from descend.ops.attention.dot_product import weigh


class SingleHead(nn.Module):
    """x (b, t, d) -> (Z (b, t, d_v), A (b, t, t))"""

    def __init__(
        self, width: int, key_size: int, value_size: int | None = None, bias: bool = True, scale: float | None = None
    ):
        super().__init__()
        self.scale = 1 / math.sqrt(key_size) if scale is None else scale
        self.q = nn.Linear(width, key_size, bias=bias)
        self.k = nn.Linear(width, key_size, bias=bias)
        self.v = nn.Linear(width, value_size or width, bias=bias)

    def scores(self, x: Tensor) -> Tensor:
        """(b, t, t) before the softmax."""
        return self.scale * self.q(x) @ self.k(x).transpose(-2, -1)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """`mask` is True where a query may look."""
        return weigh(self.scores(x), self.v(x), mask)


class TiedHead(SingleHead):
    """The same with W^Q = W^K."""

    def __init__(
        self, width: int, key_size: int, value_size: int | None = None, bias: bool = True, scale: float | None = None
    ):
        super().__init__(width, key_size, value_size, bias, scale)
        self.k = self.q
