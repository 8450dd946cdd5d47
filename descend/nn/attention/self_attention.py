"""Self-attention whose core can be another: projections and output stay, `mix` says how queries meet keys.

    Q, K, V = X W^Q, X W^K, X W^V            O = mix(Q, K, V) W^O

Every subclass stands in an encoder block in place of `Attention`, with the same weights under the same names:
`block.attn = WindowAttention(width, heads, radius=256)`.

Systems: shared-attention-core
"""

from __future__ import annotations

from torch import Tensor

from descend.nn.attention.multi_head import Attention, attend


class SelfAttention(Attention):
    """x (b, t, d) -> (b, t, d). `mask` (b, 1, 1, t) is True for keys that are not padding."""

    def forward(self, x: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:  # type: ignore[override]
        q, k, v = (part(x).unflatten(-1, (-1, self.head_size)) for part in (self.q, self.k, self.v))
        y = self.mix(q, k, v, None if mask is None else mask[:, 0, 0], causal)
        return self.out(y.flatten(-2))

    def mix(self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, causal: bool) -> Tensor:
        """(b, t, h, k) three times, and the keys to keep (b, t), give (b, t, h, k). This one is full attention."""
        mask = None if keep is None else keep[:, None, None]
        return attend(q, k, v, causal, mask, self.rate, self.scale)

    @property
    def rate(self) -> float:
        """The dropout of the weights now: none outside training."""
        return self.dropout if self.training else 0.0


def refuse_causal(causal: bool, name: str) -> None:
    """Refuse a causal mask where the pattern has none."""
    if causal:
        raise ValueError(f"{name} attends in both directions; for a causal model use strided, linear or full attention")
