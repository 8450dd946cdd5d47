"""Text classification recipes: a new or a pre-trained encoder, and a linear head on the first token."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch

from descend.contracts import Batch
from descend.data.text.labelled import Labelled, LabelledText, TrimmedInOrder
from descend.engine.parts import Parts
from descend.kinds.encoder import EncoderSize, build_encoder, build_fine_tuning
from descend.kinds.recipe import Judged, Recipe
from descend.kinds.text_columns import read_unseen_texts
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
    package: ClassVar[str] = "python"

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

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """Every text of a file, by the labels that the model knows."""
        inputs = Inputs.of(Tokenizer.load(folder), min(self.model.context, model.longest))
        names = model.config.labels.names
        records, y = read_unseen_texts(path, folder, names)
        whole = {"new": torch.arange(len(y))}
        data = Labelled(records.texts, records.seconds, y, names, torch.tensor(records.lines), whole)
        return Judged(ClassifyText(model), TrimmedInOrder(data.arrays("new", inputs), 64))
