"""BERT: a transformer encoder that reads in both directions, pre-trained by filling in masked tokens.

    h_t^0 = norm(E_tok[x_t] + E_pos[t] + E_seg[s_t])
    Y = norm(H + attention(H)),   H' = norm(Y + W_2 gelu(W_1 Y + b_1) + b_2)             post-norm, no causal mask
    L = L_MLM + λ L_NSP                                                                  (`descend.tasks.masked`)

GELU is the exact one, as released; MF prints ReLU: `activation="relu"`. Next-sentence prediction and classification
read the first token [CLS] through a tanh layer, the pooler; DLN says that the <CLS> output is not used in
pre-training, an erratum. λ = 1. Masked-LM and the heads for tags and spans have no pooler.

Parameters: (V + T + 2) d + 2 d + depth (4 (d² + d) + 2 d h + h + d + 4 d) + pooler d² + d, h = 4 d: 109.5M and 335.1M.

Systems: bert, encoder-fine-tuning-heads, next-sentence-prediction
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import nn

from descend.models._text_heads import (
    ForMaskedLM,
    ForNextSentence,
    ForPooledClassification,
    ForPreTraining,
    ForQuestionAnswering,
    ForTokenClassification,
    TextEncoder,
    WithPooler,
)
from descend.nn.encoder import Encoder, EncoderBlock
from descend.nn.text_embeddings import TextEmbeddings
from descend.ranges import Depth, Fraction, Length, Share, Token, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule, drop, rename, rename_pair, tie


@dataclass(frozen=True)
class BertConfig:
    """The configuration of a BERT; the defaults are those of the base size."""

    vocab: Length = 30522
    context: Length = 512
    width: Width = 768
    depth: Depth = 12
    heads: Width = 12
    hidden: Width = 3072
    segments: Width = 2
    dropout: Fraction = 0.1
    head_dropout: Fraction | None = None
    """Before a classifier; none: the same."""
    eps: Share = 1e-12
    pad: Token = 0
    """The token that fills up short texts."""
    labels: Labels = field(default_factory=Labels)
    activation: str = "gelu"
    """Of the feed-forward parts and the masked head: gelu, or relu as in MF."""


ACTIVATIONS: dict[str, type[nn.Module]] = {"gelu": nn.GELU, "relu": nn.ReLU}


class BertEncoder(TextEncoder):
    """Embeddings of tokens, positions and segments, and post-norm blocks."""

    Config = BertConfig

    def __init__(self, config: BertConfig):
        super().__init__()
        c = self.config = config
        self.embed = TextEmbeddings(c.vocab, c.context, c.segments, c.width, c.eps, c.dropout)
        if c.activation not in ACTIVATIONS:
            raise ValueError(f"hidden_act {c.activation!r} is not known, only {', '.join(ACTIVATIONS)}")
        self.activation = ACTIVATIONS[c.activation]
        self.encoder = Encoder(
            EncoderBlock(c.width, c.heads, c.hidden, self.activation(), c.dropout, c.eps) for _ in range(c.depth)
        )

    @property
    def head_dropout(self) -> float:
        c = self.config
        return c.dropout if c.head_dropout is None else c.head_dropout


class Bert(WithPooler, BertEncoder):
    """tokens (b, t) -> vectors (b, t, d) and the text's vector (b, d)"""


class BertForMaskedLM(ForMaskedLM, BertEncoder):
    """Pre-training by masked tokens alone."""

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.masked.activation = self.activation()


class BertForNextSentencePrediction(ForNextSentence, BertEncoder):
    """Whether the second text follows the first."""


class BertForPreTraining(ForPreTraining, BertEncoder):
    """Both objectives at once."""

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.masked.activation = self.activation()


class BertForSequenceClassification(ForPooledClassification, BertEncoder):
    """A class for a text, or for a pair."""


class BertForTokenClassification(ForTokenClassification, BertEncoder):
    """A class for each token."""


class BertForQuestionAnswering(ForQuestionAnswering, BertEncoder):
    """Where the answer starts and ends."""


SIZES = {"bert-base": BertConfig(), "bert-large": BertConfig(width=1024, depth=24, heads=16, hidden=4096)}
PARAMETERS = {"bert-base": 109_482_240, "bert-large": 335_141_888}
BY_HEAD = {  # the base size, two classes
    "BertModel": 109_482_240,
    "BertForMaskedLM": 109_514_298,
    "BertForNextSentencePrediction": 109_483_778,
    "BertForPreTraining": 110_106_428,
    "BertForSequenceClassification": 109_483_778,
    "BertForTokenClassification": 108_893_186,
    "BertForQuestionAnswering": 108_893_186,
}
TINY = BertConfig(vocab=61, context=24, width=32, depth=2, heads=4, hidden=48, dropout=0.0)

ARCHITECTURES: dict[str, type[Pretrained]] = {
    "BertModel": Bert,
    "BertForMaskedLM": BertForMaskedLM,
    "BertForNextSentencePrediction": BertForNextSentencePrediction,
    "BertForPreTraining": BertForPreTraining,
    "BertForSequenceClassification": BertForSequenceClassification,
    "BertForTokenClassification": BertForTokenClassification,
    "BertForQuestionAnswering": BertForQuestionAnswering,
}

LAYOUT = Layout(
    architecture="BertModel",
    fields={
        "vocab": "vocab_size",
        "context": "max_position_embeddings",
        "width": "hidden_size",
        "depth": "num_hidden_layers",
        "heads": "num_attention_heads",
        "hidden": "intermediate_size",
        "segments": "type_vocab_size",
        "dropout": ("hidden_dropout_prob", "attention_probs_dropout_prob"),
        "head_dropout": "classifier_dropout",
        "eps": "layer_norm_eps",
        "pad": "pad_token_id",
        "labels": "id2label",
        "activation": "hidden_act",
    },
    parts={"labels": Labels},
    fixed={
        "is_decoder": False,
        "add_cross_attention": False,
        "tie_word_embeddings": True,
        "position_embedding_type": "absolute",
    },
    bare_prefix="bert.",
)


def norm_keys(ours: str, theirs: str) -> list[Rule]:
    """A norm's scale and shift; files of 2018 call them gamma and beta."""
    pairs = (("weight", "weight"), ("bias", "bias"), ("weight", "gamma"), ("bias", "beta"))
    return [rename(f"{ours}.{a}", f"{theirs}.{b}") for a, b in pairs]


def encoder_keys(prefix: str) -> list[Rule]:
    """Embeddings, blocks and pooler, which RoBERTa names alike."""
    tables = {"token": "word", "position": "position", "segment": "token_type"}
    layer, block = f"{prefix}.encoder.layer.{{}}", "encoder.blocks.{}"
    qkv = {"q": "query", "k": "key", "v": "value"}
    return [
        *(rename(f"embed.{a}.weight", f"{prefix}.embeddings.{b}_embeddings.weight") for a, b in tables.items()),
        *norm_keys("embed.norm", f"{prefix}.embeddings.LayerNorm"),
        *(r for a, b in qkv.items() for r in rename_pair(f"{block}.attn.{a}", f"{layer}.attention.self.{b}")),
        *rename_pair(f"{block}.attn.out", f"{layer}.attention.output.dense"),
        *norm_keys(f"{block}.norm_1", f"{layer}.attention.output.LayerNorm"),
        *rename_pair(f"{block}.mlp.up", f"{layer}.intermediate.dense"),
        *rename_pair(f"{block}.mlp.down", f"{layer}.output.dense"),
        *norm_keys(f"{block}.norm_2", f"{layer}.output.LayerNorm"),
        *rename_pair("pooler.dense", f"{prefix}.pooler.dense"),
        drop(f"{prefix}.embeddings.position_ids"),
    ]


KEYS = [
    *encoder_keys("bert"),
    *rename_pair("masked.dense", "cls.predictions.transform.dense"),
    *norm_keys("masked.norm", "cls.predictions.transform.LayerNorm"),
    rename("masked.bias", "cls.predictions.bias"),
    tie("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
    tie("cls.predictions.decoder.bias", "cls.predictions.bias"),
    *rename_pair("follows", "cls.seq_relationship"),
    *rename_pair("classes", "classifier"),
    *rename_pair("tags", "classifier"),
    *rename_pair("span", "qa_outputs"),
]
