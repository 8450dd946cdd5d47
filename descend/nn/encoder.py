"""The transformer encoder: blocks in which every position looks at every other, in both directions.

    Y  = norm_1(X + attention(X))            norm after the sum (post-norm): the books, BERT, RoBERTa
    X' = norm_2(Y + mlp(Y))

    Y  = X + attention(norm_1(X))            norm before the layer (pre-norm): MF 34 for RoBERTa, ViT
    X' = Y + mlp(norm_2(Y))

One core serves all: a causal mask makes a decoder of it, another embedding below or another head above makes BERT, ViT
or DETR. The state dicts of both forms, and of encoders under different embeddings, are interchangeable. DLD calls norms
and residual sums optional: put nn.Identity() in place of a norm; `WithoutResidual` is the block without the sums.

Parameters of a block: 4 d² + 2 d h + h + d + 4 d for a hidden width h, and 4 d more with biases in the attention (at
d = 512, h = 2048: 3,150,336 without, 3,152,384 with them).

Padding is masked as KEYS only: rows of padded queries are computed and ignored. (MF-B.72 masks the queries too, an
erratum: those rows become 0/0.)

Systems: transformer-encoder-block, padding-mask, shared-attention-core
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn

from descend.nn.attention.multi_head import Attention
from descend.nn.mlp import MLP
from descend.ops.attention.dot_product import padding_mask


def key_mask(mask: Tensor | None, t: int) -> Tensor | None:
    """What `attend` takes, (b, 1, 1, t), from a mask (b, t) that is true for real tokens, or from lengths (b)."""
    if mask is None:
        return None
    if mask.dim() == 1:
        return padding_mask(mask, t)
    if mask.dim() != 2 or mask.shape[1] != t:
        raise ValueError(f"a mask of shape {tuple(mask.shape)} for {t} tokens; give (batch, {t}) or lengths (batch)")
    return mask.bool()[:, None, None, :]


class EncoderBlock(nn.Module):
    """Y = norm_1(X + attention(X)),  X' = norm_2(Y + mlp(Y)): x (b, t, d) -> (b, t, d)"""

    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int,
        activation: nn.Module,
        dropout: float = 0.0,
        eps: float = 1e-5,
        attention_bias: bool = True,
    ):
        super().__init__()
        self.attn = Attention(width, heads, bias=attention_bias, dropout=dropout)
        self.norm_1: nn.Module = nn.LayerNorm(width, eps)
        self.mlp = MLP(width, hidden, activation)
        self.norm_2: nn.Module = nn.LayerNorm(width, eps)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """`mask` and `causal` as in `attend`."""
        y = self.norm_1(x + self.drop(self.attn(x, mask=mask, causal=causal)))
        x = self.norm_2(y + self.drop(self.mlp(y)))
        return x


class PreNormBlock(EncoderBlock):
    """Y = X + attention(norm_1(X)),  X' = Y + mlp(norm_2(Y)); the same parameters under the same names."""

    def forward(self, x: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        x = x + self.drop(self.attn(self.norm_1(x), mask=mask, causal=causal))
        return x + self.drop(self.mlp(self.norm_2(x)))


class WithoutResidual(EncoderBlock):
    """Y = norm_1(attention(X)),  X' = norm_2(mlp(Y)): nothing carries X past a layer."""

    def forward(self, x: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        y = self.norm_1(self.drop(self.attn(x, mask=mask, causal=causal)))
        x = self.norm_2(self.drop(self.mlp(y)))
        return x


class Encoder(nn.Module):
    """N blocks, each with parameters of its own."""

    def __init__(self, blocks: Iterable[EncoderBlock]):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """x (b, t, d) -> (b, t, d). `mask` (b, t) is true for real tokens, or lengths (b); none: all are real."""
        keys = key_mask(mask, x.shape[1])
        for block in self.blocks:
            x = block(x, keys, causal)
        return x

    def layers(self, x: Tensor, mask: Tensor | None = None) -> list[Tensor]:
        """x itself, then what each block makes of it: depth + 1 tensors (b, t, d)."""
        keys, found = key_mask(mask, x.shape[1]), [x]
        for block in self.blocks:
            found.append(block(found[-1], keys))
        return found
