"""The transformer's family tree: who, when, of which kind, and where it is here.

    encoder           every position sees every other         BERT, RoBERTa
    decoder           a position sees those before it         GPT, PaLM, LLaMA
    encoder-decoder   a decoder that also looks at a source   the Transformer, T5
    sparse            an encoder with local attention         Longformer
    moe               a decoder with experts                  Mixtral
    vision            an encoder over patches                 ViT

The table of MF 20.1.1. Its years are those of the book; where a model was published in another year, `published` says
so (Longformer 2020, T5 2019, ViT 2020, Mixtral December 2023). `file` is the model's file in `descend/models`. The
names in DLN (DLN-B.106: Transformer-XL, DeBERTa, Falcon, Gemini …) have no definition there, so they have no entry
here.

Systems: transformer-variant-registry
"""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("encoder", "decoder", "encoder-decoder", "sparse", "moe", "vision")


@dataclass(frozen=True)
class Variant:
    """One row: what is new in it, the book's year, and the year of publication where they differ."""

    name: str
    year: int
    kind: str
    new: str
    file: str
    published: int = 0

    @property
    def first(self) -> int:
        """The year in which it was published."""
        return self.published or self.year


VARIANTS = (
    Variant("Transformer", 2017, "encoder-decoder", "self-attention instead of recurrence", "transformer"),
    Variant("BERT", 2018, "encoder", "both directions, masked language modelling", "bert"),
    Variant("GPT", 2018, "decoder", "the decoder alone, next-token prediction", "openai_gpt"),
    Variant("RoBERTa", 2019, "encoder", "BERT trained longer, masks drawn anew", "roberta"),
    Variant("Longformer", 2019, "sparse", "a window and some global tokens", "longformer", 2020),
    Variant("T5", 2020, "encoder-decoder", "every task is text to text", "t5", 2019),
    Variant("ViT", 2021, "vision", "an image as a text of patches", "vit", 2020),
    Variant("PaLM", 2022, "decoder", "540 billion parameters, parallel blocks", "palm"),
    Variant("LLaMA", 2023, "decoder", "open weights, RMSNorm, SwiGLU, rotary positions", "llama"),
    Variant("Mixtral", 2024, "moe", "eight experts, two for each token", "mixtral", 2023),
)


def of_kind(kind: str) -> list[Variant]:
    """The variants of one kind, oldest first."""
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is not a kind of transformer: choose {', '.join(KINDS)}")
    return sorted((v for v in VARIANTS if v.kind == kind), key=lambda v: v.first)
