"""RoBERTa with the norm first: the block as MF 34.3 writes it, which trains without a warm-up.

    h_t^0 = norm(E_tok[x_t] + E_pos[pad + t])
    Y = H + attention(norm(H)),   H' = Y + W_2 gelu(W_1 norm(Y) + b_1) + b_2             pre-norm, no causal mask
    x = norm(H_depth)                                                                    the sum has never been normed

All else is that of `roberta`, whose released files have the norm after the sum. This is what transformers calls
RoBERTa-PreLayerNorm; MF writes the embeddings without their norm (nn.Identity() in the place of `embed.norm`).

Systems: roberta
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor, nn

from descend.models._text_heads import (
    ForMaskedLM,
    ForQuestionAnswering,
    ForSequenceClassification,
    ForTokenClassification,
    WithPooler,
)
from descend.models.roberta import LAYOUT as ROBERTA_LAYOUT
from descend.models.roberta import RobertaConfig, RobertaEncoder, language_keys
from descend.nn.encoder import Encoder, PreNormBlock
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename_pair


@dataclass(frozen=True)
class RobertaPreLayerNormConfig(RobertaConfig):
    """The configuration of a RoBERTa."""


class RobertaPreLayerNormEncoder(RobertaEncoder):
    """RoBERTa's embeddings, pre-norm blocks and a last norm."""

    Config = RobertaPreLayerNormConfig

    def __init__(self, config: RobertaPreLayerNormConfig):
        super().__init__(config)
        c = config
        self.encoder = Encoder(
            PreNormBlock(c.width, c.heads, c.hidden, nn.GELU(), c.dropout, c.eps) for _ in range(c.depth)
        )
        self.norm = nn.LayerNorm(c.width, c.eps)

    def hidden(self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        return self.norm(super().hidden(tokens, mask, segments))


class RobertaPreLayerNorm(WithPooler, RobertaPreLayerNormEncoder):
    """tokens (b, t) -> vectors (b, t, d) and the text's vector (b, d)"""


class RobertaPreLayerNormForMaskedLM(ForMaskedLM, RobertaPreLayerNormEncoder):
    """Pre-training."""


class RobertaPreLayerNormForSequenceClassification(ForSequenceClassification, RobertaPreLayerNormEncoder):
    """A class for a text."""


class RobertaPreLayerNormForTokenClassification(ForTokenClassification, RobertaPreLayerNormEncoder):
    """A class for each token."""


class RobertaPreLayerNormForQuestionAnswering(ForQuestionAnswering, RobertaPreLayerNormEncoder):
    """Where the answer starts and ends."""


TINY = RobertaPreLayerNormConfig(
    vocab=61, context=24, width=32, depth=2, heads=4, hidden=48, segments=1, dropout=0.0
)  # fmt: skip

ARCHITECTURES: dict[str, type[Pretrained]] = {
    "RobertaPreLayerNormModel": RobertaPreLayerNorm,
    "RobertaPreLayerNormForMaskedLM": RobertaPreLayerNormForMaskedLM,
    "RobertaPreLayerNormForSequenceClassification": RobertaPreLayerNormForSequenceClassification,
    "RobertaPreLayerNormForTokenClassification": RobertaPreLayerNormForTokenClassification,
    "RobertaPreLayerNormForQuestionAnswering": RobertaPreLayerNormForQuestionAnswering,
}

PREFIX, BLOCK = "roberta_prelayernorm", "encoder.blocks.{}"
LAYOUT = replace(
    ROBERTA_LAYOUT,
    architecture="RobertaPreLayerNormModel",
    bare_prefix=f"{PREFIX}.",
    fixed=ROBERTA_LAYOUT.fixed | {"model_type": "roberta-prelayernorm"},
)
KEYS = [
    *rename_pair(f"{BLOCK}.norm_1", f"{PREFIX}.encoder.layer.{{}}.attention.LayerNorm"),
    *rename_pair(f"{BLOCK}.norm_2", f"{PREFIX}.encoder.layer.{{}}.intermediate.LayerNorm"),
    *rename_pair("norm", f"{PREFIX}.LayerNorm"),
    *language_keys(PREFIX),
]
