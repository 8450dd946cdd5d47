"""Text classification recipes: a new or a pre-trained encoder, and a linear head on the first token."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from descend.data.text.labelled import Labelled, LabelledText, TrimmedInOrder
from descend.engine.protocol import Batch, Exhibit, Parts
from descend.kinds.encoder import EncoderSize, encoder, fine_tuned
from descend.kinds.recipe import Recipe
from descend.metrics.classification import confusion
from descend.optim.rules import AdamW
from descend.optim.schedules import Linear
from descend.tasks.fine_tune import ClassifyText, read
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.weights.labels import Labels

SHOWN = 8  # texts in the report


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
        return data, *encoder(self.model, "ForSequenceClassification", Labels(data.names), learn)

    def build(self) -> Parts:
        return fine_tuned(self, ClassifyText, "texts", "passages of the Python documentation, by chapter", look)

    def test(self) -> Iterable[Batch]:
        """The test texts."""
        data, _, inputs, _ = self.parts()
        return TrimmedInOrder(data.arrays("test", inputs), 64)


def look(model: Any, data: Labelled, inputs: Inputs) -> list[Exhibit]:
    """What is taken for what, and the texts where the model is most wrong."""
    where, arrays = next(model.parameters()).device, data.arrays("valid", inputs)
    batches = [{k: v.to(where) for k, v in b.items()} for b in TrimmedInOrder(arrays, 64)]
    p = torch.cat([read(model, batch).softmax(dim=-1).cpu() for batch in batches])
    predicted, y = p.argmax(dim=-1), arrays["y"]
    counts = {"labels": list(data.names), "counts": confusion(predicted, y, len(data.names)).tolist()}
    sure = torch.where(predicted == y, -1.0, p.amax(dim=-1))
    worst = [i for i in sure.argsort(descending=True)[:SHOWN].tolist() if sure[i] > 0]
    rows = [
        [data.names[int(y[i])], f"{data.names[int(predicted[i])]} {float(sure[i]):.0%}",
         data.texts[int(data.parts["valid"][i])][:160]]
        for i in worst
    ]  # fmt: skip
    return [
        Exhibit("confusion", "What is taken for what", counts, "Validation texts, best checkpoint."),
        Exhibit("table", "Most confident mistakes", {"columns": ["true", "called", "text"], "rows": rows}),
    ]
