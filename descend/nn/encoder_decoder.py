"""The layers of an encoder-decoder transformer, for any attention, feed-forward part and norm.

    encoder layer   x ← add_1(x, self-attention)    x ← add_2(x, feed-forward)
    decoder layer   y ← add_1(y, masked self-attention)
                    y ← add_2(y, attention to the source)        Q from y, K and V from the encoder's output
                    y ← add_3(y, feed-forward)

`add` is a residual connection with a norm (`descend.nn.add_norm`). The attention to the source has no causal mask, only
the source's padding is hidden. Every decoder layer looks at the same encoder output, that of the LAST encoder layer.
Parameters of a post-norm decoder layer: 8 d² + 2 d d_ff + d_ff + d + 6 d without attention biases, 8 d more with them.

Systems: transformer-decoder-block
"""

from __future__ import annotations

from torch import Tensor, nn

from descend.nn.add_norm import AddNorm
from descend.nn.attention.multi_head import Attention, split_heads
from descend.ops.attention.dot_product import scores, weigh


def visible(real: Tensor | None, bias: Tensor | None = None) -> Tensor | None:
    """The mask for `attend` of keys, `real` (b, s) where not padding, with `bias` (1, h, t, s) on the scores."""
    seen = None if real is None else real[:, None, None, :]
    if bias is None or seen is None:
        return seen if bias is None else bias
    return bias.masked_fill(~seen, float("-inf"))


class EncoderLayer(nn.Module):
    """Self-attention in both directions, then the feed-forward part."""

    def __init__(self, attn: Attention, add_1: AddNorm, mlp: nn.Module, add_2: AddNorm):
        super().__init__()
        self.attn, self.add_1, self.mlp, self.add_2 = attn, add_1, mlp, add_2

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """`mask` as in `attend`: who may be looked at, or what is added to the scores."""
        x = self.add_1(x, lambda x: self.attn(x, mask=mask))
        x = self.add_2(x, self.mlp)
        return x


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the source, then the feed-forward part."""

    def __init__(
        self, attn: Attention, add_1: AddNorm, cross: Attention, add_2: AddNorm, mlp: nn.Module, add_3: AddNorm
    ):
        super().__init__()
        self.attn, self.add_1 = attn, add_1
        self.cross, self.add_2 = cross, add_2
        self.mlp, self.add_3 = mlp, add_3

    def forward(
        self, y: Tensor, memory: Tensor, mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        """y (b, t, d) and the encoder's output (b, s, d); `mask` is added to what causality allows."""
        y = self.add_1(y, lambda y: self.attn(y, mask=mask, causal=True))
        y = self.add_2(y, lambda y: self.cross(y, memory, mask=memory_mask))
        y = self.add_3(y, self.mlp)
        return y

    def forward_with_weights(
        self, y: Tensor, memory: Tensor, mask: Tensor | None, memory_mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """What `forward` gives, and A (b, h, t, s): which source position each target position looks at."""
        found: list[Tensor] = []

        def cross(y: Tensor) -> Tensor:
            found.append(attention_weights(self.cross, y, memory, memory_mask))
            return self.cross(y, memory, mask=memory_mask)

        y = self.add_1(y, lambda y: self.attn(y, mask=mask, causal=True))
        y = self.add_2(y, cross)
        y = self.add_3(y, self.mlp)
        return y, found[0]


def attention_weights(attn: Attention, x: Tensor, source: Tensor, mask: Tensor | None = None) -> Tensor:
    """A (b, h, t, s) of the attention from x to `source`, by the equation; `mask` is True where a query may look."""
    q, k = split_heads(attn.q(x), attn.heads), split_heads(attn.k(source), attn.k.out_features // attn.head_size)
    q = q if attn.scale is None else q * attn.scale * attn.head_size**0.5
    return weigh(scores(q, k), k, mask)[1]
