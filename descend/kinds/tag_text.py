"""Tagging recipes: a new or a pre-trained encoder, and a linear head on every token."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from descend.data.text.labelled import TrimmedInOrder
from descend.data.text.tagged import Tagged, TaggedText
from descend.engine.protocol import Batch, Exhibit, Parts
from descend.kinds.encoder import EncoderSize, encoder, fine_tuned
from descend.kinds.recipe import Recipe
from descend.metrics.classification import confusion
from descend.metrics.spans import thing_f1
from descend.optim.rules import AdamW
from descend.optim.schedules import Linear
from descend.tasks.fine_tune import TagTokens, read
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.weights.labels import Labels


@dataclass(frozen=True)
class TagRecipe(Recipe):
    """A tagger of words."""

    model: EncoderSize = field(default_factory=EncoderSize)
    data: TaggedText = field(default_factory=TaggedText)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Linear)

    def parts(self) -> tuple[Tagged, Any, Inputs, str]:
        """The data, the model, the form of its inputs, and what it started from."""
        data = self.data.read()
        torch.manual_seed(self.loop.seed)
        learn = lambda: Tokenizer.bpe(
            "\n".join(" ".join(data.words[i]) for i in data.parts["train"].tolist()), self.data.vocab
        )
        return data, *encoder(self.model, "ForTokenClassification", Labels(data.names), learn)

    def build(self) -> Parts:
        return fine_tuned(self, TagTokens, "sentences", "source of the standard library, tagged by tokenize", look)

    def test(self) -> Iterable[Batch]:
        """The test sentences."""
        data, _, inputs, _ = self.parts()
        return TrimmedInOrder(data.arrays("test", inputs), 64)


def look(model: Any, data: Tagged, inputs: Inputs) -> list[Exhibit]:
    """What is taken for what; with tags B-, I- and O also the F1 of whole things."""
    where, found, true = next(model.parameters()).device, [], []
    for batch in TrimmedInOrder(data.arrays("valid", inputs), 64):
        predicted = read(model, {k: v.to(where) for k, v in batch.items()}).argmax(dim=-1).cpu()
        found += [row[at] for row, at in zip(predicted, batch["at"], strict=True)]
        true += [row[at] for row, at in zip(batch["y"], batch["at"], strict=True)]
    counts = confusion(torch.cat(found), torch.cat(true), len(data.names))
    shown = [Exhibit("confusion", "What is taken for what", {"labels": list(data.names), "counts": counts.tolist()})]
    if "O" in data.names:
        spelled = [[[data.names[k] for k in row.tolist()] for row in rows] for rows in (found, true)]
        shown.append(Exhibit("text", "Whole things", f"F1 {thing_f1(*spelled):.4f} on the validation sentences"))
    return shown
