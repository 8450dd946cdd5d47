"""Text classification recipes: a new or a pre-trained encoder, and a linear head on the first token."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from descend.contracts import Batch
from descend.data.text.labelled import Labelled, LabelledText, TrimmedInOrder
from descend.engine.parts import Parts
from descend.kinds.encoder import EncoderSize, build_encoder, build_fine_tuning
from descend.kinds.recipe import Recipe
from descend.optim.rules import AdamW
from descend.optim.schedules import Linear
from descend.tasks.fine_tune import ClassifyText
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.views.text_labels import show_text_classes
from descend.weights.labels import Labels


@dataclass(frozen=True)
class TextRecipe(Recipe):
    """A classifier of texts or of pairs of texts."""

    model: EncoderSize = field(default_factory=EncoderSize)
    data: LabelledText = field(default_factory=LabelledText)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Linear)

    def parts(self) -> tuple[Labelled, Any, Inputs, str]:
        """The data, the model, the form of its inputs, and what it started from."""
        data = self.data.read()
        torch.manual_seed(self.loop.seed)
        train = [text for i in data.parts["train"].tolist() for text in (data.texts[i], *data.seconds[i : i + 1])]
        learn = lambda: Tokenizer.bpe("\n".join(train), self.data.vocab)
        return data, *build_encoder(self.model, "ForSequenceClassification", Labels(data.names), learn)

    def build(self) -> Parts:
        return build_fine_tuning(
            self, ClassifyText, "texts", "passages of the Python documentation, by chapter", show_text_classes
        )

    def test(self) -> Iterable[Batch]:
        """The test texts."""
        data, _, inputs, _ = self.parts()
        return TrimmedInOrder(data.arrays("test", inputs), 64)
