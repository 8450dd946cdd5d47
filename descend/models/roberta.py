"""RoBERTa: BERT's encoder without segments and without next-sentence prediction, pre-trained with fresh masks.

    h_t^0 = norm(E_tok[x_t] + E_pos[pad + t])            t = 1, 2, ..: positions begin behind the padding token's number
    blocks as in BERT, norm after the sum                 (MF 34.3 writes them norm first; the released ones are not)
    min E_x E_M L_MLM(x, M)                               a new mask M each time (`descend.data.text.masking.Dynamic`)

With pad = 1 positions are 2, 3, .. and a text of 512 tokens needs 514 rows. Padding keeps the row of `pad`. The files
hold one segment row, added to every token: a constant. The classifier has a tanh layer of its own, no pooler.

Systems: roberta
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from descend.models._text_heads import (
    ForMaskedLM,
    ForQuestionAnswering,
    ForSequenceClassification,
    ForTokenClassification,
    WithPooler,
)
from descend.models.bert import LAYOUT as BERT_LAYOUT
from descend.models.bert import BertConfig, BertEncoder, encoder_keys
from descend.ranges import Length, Token
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule, rename, rename_pair, tie


@dataclass(frozen=True)
class RobertaConfig(BertConfig):
    """The configuration of a RoBERTa; what a file leaves out takes these defaults. `context` counts the rows of the
    position table: pad + 1 more than the longest text."""

    vocab: Length = 50265
    pad: Token = 1


def positions(tokens: Tensor, pad: int) -> Tensor:
    """pad + 1, pad + 2, .. for the tokens that are not padding, and pad for those that are: (b, t) -> (b, t)"""
    is_real = tokens != pad
    return is_real.cumsum(dim=1) * is_real + pad


class RobertaEncoder(BertEncoder):
    """BERT's encoder with positions that begin behind the padding token's number."""

    Config = RobertaConfig

    @property
    def longest(self) -> int:
        """The most tokens of a text: the first pad + 1 rows of the position table are not used."""
        return self.config.context - self.config.pad - 1

    def positions(self, tokens: Tensor) -> Tensor:
        return positions(tokens, self.config.pad)


class Roberta(WithPooler, RobertaEncoder):
    """tokens (b, t) -> vectors (b, t, d) and the text's vector (b, d)"""


class RobertaForMaskedLM(ForMaskedLM, RobertaEncoder):
    """Pre-training."""


class RobertaForSequenceClassification(ForSequenceClassification, RobertaEncoder):
    """A class for a text."""


class RobertaForTokenClassification(ForTokenClassification, RobertaEncoder):
    """A class for each token."""


class RobertaForQuestionAnswering(ForQuestionAnswering, RobertaEncoder):
    """Where the answer starts and ends."""


SIZES = {
    "roberta-base": RobertaConfig(context=514, segments=1, eps=1e-5),
    "roberta-large": RobertaConfig(context=514, segments=1, eps=1e-5, width=1024, depth=24, heads=16, hidden=4096),
}
PARAMETERS = {"roberta-base": 124_645_632, "roberta-large": 355_359_744}
BY_HEAD = {  # the base size, two classes
    "RobertaModel": 124_645_632,
    "RobertaForMaskedLM": 124_697_433,
    "RobertaForSequenceClassification": 124_647_170,
    "RobertaForTokenClassification": 124_056_578,
    "RobertaForQuestionAnswering": 124_056_578,
}
TINY = RobertaConfig(vocab=61, context=24, width=32, depth=2, heads=4, hidden=48, segments=1, dropout=0.0)

ARCHITECTURES: dict[str, type[Pretrained]] = {
    "RobertaModel": Roberta,
    "RobertaForMaskedLM": RobertaForMaskedLM,
    "RobertaForSequenceClassification": RobertaForSequenceClassification,
    "RobertaForTokenClassification": RobertaForTokenClassification,
    "RobertaForQuestionAnswering": RobertaForQuestionAnswering,
}

LAYOUT = replace(BERT_LAYOUT, architecture="RobertaModel", bare_prefix="roberta.")


def language_keys(prefix: str) -> list[Rule]:
    """The encoder and all heads, which the families after RoBERTa name alike."""
    return [
        *encoder_keys(prefix),
        *rename_pair("masked.dense", "lm_head.dense"),
        *rename_pair("masked.norm", "lm_head.layer_norm"),
        rename("masked.bias", "lm_head.bias"),
        tie("lm_head.decoder.weight", f"{prefix}.embeddings.word_embeddings.weight"),
        tie("lm_head.decoder.bias", "lm_head.bias"),
        *rename_pair("dense", "classifier.dense"),
        *rename_pair("classes", "classifier.out_proj"),
        *rename_pair("tags", "classifier"),
        *rename_pair("span", "qa_outputs"),
    ]


KEYS = language_keys("roberta")
