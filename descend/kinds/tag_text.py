"""Tagging recipes: a new or a pre-trained encoder, and a linear head on every token."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch

from descend.contracts import Batch
from descend.data.text.labelled import TrimmedInOrder
from descend.data.text.tagged import Tagged, TaggedText, encode_tagged
from descend.engine.parts import Parts
from descend.kinds.encoder import EncoderSize, build_encoder, build_fine_tuning
from descend.kinds.recipe import Judged, Recipe
from descend.optim.rules import AdamW
from descend.optim.schedules import Linear
from descend.tasks.fine_tune import TagTokens
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.views.text_labels import show_tags
from descend.weights.labels import Labels


@dataclass(frozen=True)
class TagRecipe(Recipe):
    """A tagger of words."""

    model: EncoderSize = field(default_factory=EncoderSize)
    data: TaggedText = field(default_factory=TaggedText)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Linear)
    package: ClassVar[str] = "python"

    def parts(self) -> tuple[Tagged, Any, Inputs, str]:
        """The data, the model, the form of its inputs, and what it started from."""
        data = self.data.read()
        torch.manual_seed(self.loop.seed)
        learn = lambda: Tokenizer.bpe(
            "\n".join(" ".join(data.words[i]) for i in data.parts["train"].tolist()), self.data.vocab
        )
        return data, *build_encoder(self.model, "ForTokenClassification", Labels(data.names), learn)

    def build(self) -> Parts:
        return build_fine_tuning(
            self, TagTokens, "sentences", "source of the standard library, tagged by tokenize", show_tags
        )

    def test(self) -> Iterable[Batch]:
        """The test sentences."""
        data, _, inputs, _ = self.parts()
        return TrimmedInOrder(data.arrays("test", inputs), 64)

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """Every sentence of a file, by the tags that the model knows."""
        inputs = Inputs.of(Tokenizer.load(folder), min(self.model.context, model.longest))
        return Judged(TagTokens(model), TrimmedInOrder(encode_tagged(path, inputs, model.config.labels.names), 64))
