"""Longformer as MF writes it: one set of projections for window and global rows, and windows that may be dilated.

    N(i) = {1..t} for i in G, else {i + m s : |m| ≤ w} ∪ G        s: the stride of the layer, 1 without dilation
    Q, K, V = X W^Q, X W^K, X W^V                                for every row; the released model has Q_g, K_g, V_g too

A layer with stride s reaches w s tokens to each side at the cost of w; strides that differ between layers leave no
token out. With s = 1 and w ≥ t − 1 it is the full encoder, global tokens or not. All else is that of `longformer`;
transformers has no such model, the files are in descend's own layout.

Systems: longformer
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from descend.models._text_heads import (
    ForMaskedLM,
    ForQuestionAnswering,
    ForSequenceClassification,
    ForTokenClassification,
    WithPooler,
)
from descend.models.longformer import LAYOUT as RELEASED
from descend.models.longformer import (
    TINY_INPUT,
    LongformerConfig,
    LongformerEncoder,
    LongformerForQuestionAnswering,
    LongformerForSequenceClassification,
    Windows,
)
from descend.models.roberta import language_keys
from descend.nn.attention.sliding_window import GlobalWindow
from descend.ranges import Length
from descend.weights.pretrained import Pretrained

__all__ = ["TINY_INPUT"]  # tokens and mask, as for the released form


@dataclass(frozen=True)
class LongformerSharedConfig(LongformerConfig):
    """The configuration of a Longformer, and a stride for each layer."""

    strides: tuple[Length, ...] = (1,)
    """One for all layers, or one for each."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "strides", tuple(self.strides))  # a list when read from config.json
        if len(self.strides) not in (1, self.depth):
            raise ValueError(f"{len(self.strides)} strides for {self.depth} layers; give 1, or one each")


class LongformerSharedEncoder(LongformerEncoder):
    """RoBERTa's encoder with dilated windows and global tokens."""

    Config = LongformerSharedConfig

    def attentions(self, config: LongformerConfig) -> list[GlobalWindow]:
        c: LongformerSharedConfig = self.config
        strides = c.strides * c.depth if len(c.strides) == 1 else c.strides
        pairs = zip(c.windows.radii(c.depth), strides, strict=True)
        return [GlobalWindow(c.width, c.heads, radius, c.dropout, stride) for radius, stride in pairs]


class LongformerShared(WithPooler, LongformerSharedEncoder):
    """tokens (b, t) -> vectors (b, t, d) and the text's vector (b, d)"""


class LongformerSharedForMaskedLM(ForMaskedLM, LongformerSharedEncoder):
    """Pre-training."""


class LongformerSharedForSequenceClassification(ForSequenceClassification, LongformerSharedEncoder):
    """A class for a text; the first token is global."""

    choose_global = LongformerForSequenceClassification.choose_global


class LongformerSharedForTokenClassification(ForTokenClassification, LongformerSharedEncoder):
    """A class for each token."""


class LongformerSharedForQuestionAnswering(ForQuestionAnswering, LongformerSharedEncoder):
    """Where the answer starts and ends; the question is global."""

    choose_global = LongformerForQuestionAnswering.choose_global


TINY = LongformerSharedConfig(
    vocab=61, context=40, width=32, depth=2, heads=4, hidden=48, segments=1, windows=Windows((4, 6)), dropout=0.0,
    strides=(1, 2),
)  # fmt: skip

ARCHITECTURES: dict[str, type[Pretrained]] = {
    "LongformerShared": LongformerShared,
    "LongformerSharedForMaskedLM": LongformerSharedForMaskedLM,
    "LongformerSharedForSequenceClassification": LongformerSharedForSequenceClassification,
    "LongformerSharedForTokenClassification": LongformerSharedForTokenClassification,
    "LongformerSharedForQuestionAnswering": LongformerSharedForQuestionAnswering,
}

LAYOUT = replace(
    RELEASED,
    architecture="LongformerSharedForMaskedLM",
    fields=RELEASED.fields | {"strides": "strides"},
    library="descend",
)
KEYS = language_keys("longformer")
