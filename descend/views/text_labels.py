"""What classifiers and taggers of text show: the scores of the classes, and the texts where they are most wrong."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from descend.contracts import Batch, Exhibit
from descend.data.text.labelled import Labelled, TrimmedInOrder
from descend.data.text.sentiment import TextsInOrder
from descend.data.text.tagged import Tagged
from descend.metrics.spans import thing_f1
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.views.classes import rank_mistakes, show_classification

if TYPE_CHECKING:
    from descend.models.text_classifier import TextClassifier

SHOWN = 8  # texts in the report
LETTERS = 160  # of each


Predict = Callable[[Batch], Tensor]
"""A batch -> the logits of a model, on the CPU."""


def show_text_classes(predict: Predict, data: Labelled, inputs: Inputs) -> list[Exhibit]:
    """The scores of the classes, and the texts where a fine-tuned encoder is most wrong."""
    arrays = data.arrays("valid", inputs)
    p = torch.cat([predict(batch).softmax(dim=-1) for batch in TrimmedInOrder(arrays, 64)])
    texts = [data.texts[row][:LETTERS] for row in data.parts["valid"].tolist()]
    chosen = choose_distinct(rank_mistakes(p, arrays["y"], len(texts)), texts)
    rows = [[*name_mistake(p[i], int(arrays["y"][i]), data.names), texts[i]] for i in chosen]
    return [
        *show_classification(p, arrays["y"], data.names, "texts"),
        Exhibit("table", "Most confident mistakes", {"columns": ["true", "predicted", "text"], "rows": rows}),
    ]


def choose_distinct(rows: Sequence[int], keys: Sequence[Hashable]) -> list[int]:
    """The first SHOWN rows whose keys differ: a text that is there ten times is shown once."""
    first: dict[Hashable, int] = {}
    for row in rows:
        first.setdefault(keys[row], row)
    return list(first.values())[:SHOWN]


def name_mistake(p: Tensor, y: int, names: Sequence[str]) -> list[str]:
    """The true class, and the predicted one with its probability."""
    return [names[y], f"{names[int(p.argmax())]} {float(p.max()):.0%}"]


def show_tags(predict: Predict, data: Tagged, inputs: Inputs) -> list[Exhibit]:
    """The scores of the tags; with tags B-, I- and O also the F1 of entities."""
    guessed, found, true = [], [], []
    for batch in TrimmedInOrder(data.arrays("valid", inputs), 64):
        p = predict(batch).softmax(dim=-1)
        guessed.append(p[batch["at"]])
        found += [row[at] for row, at in zip(p.argmax(dim=-1), batch["at"], strict=True)]
        true += [row[at] for row, at in zip(batch["y"], batch["at"], strict=True)]
    shown = show_classification(torch.cat(guessed), torch.cat(true), data.names, "words")
    if "O" in data.names:
        spelled = [[[data.names[k] for k in row.tolist()] for row in rows] for rows in (found, true)]
        shown.append(Exhibit("text", "Entities", f"F1 {thing_f1(*spelled):.4f} on the validation sentences"))
    return shown


def show_opinions(model: TextClassifier, arrays: Batch, tokenizer: Tokenizer, names: list[str]) -> list[Exhibit]:
    """The same for a recurrent classifier, with the words that it attended to most."""
    where = next(model.parameters()).device
    p = torch.cat([model(b["x"].to(where)).softmax(dim=-1).cpu() for b in TextsInOrder(arrays, 256)])
    rows = []
    keys = [tuple(row) for row in arrays["x"].tolist()]
    for i in choose_distinct(rank_mistakes(p, arrays["y"], len(keys)), keys):
        x = arrays["x"][i : i + 1]
        x = x[:, x[0] != 0].to(where)
        words = [tokenizer.decode([token]) for token in x[0].tolist()]
        best = ""
        if model.config.head == "attention":
            best = ", ".join(words[j] for j in model.weights(x)[0].topk(min(3, len(words))).indices.tolist())
        rows.append([*name_mistake(p[i], int(arrays["y"][i]), names), best, " ".join(words)[:LETTERS]])
    table = {"columns": ["true", "predicted", "most attention", "text"], "rows": rows}
    return [
        *show_classification(p, arrays["y"], names, "texts"),
        Exhibit("table", "Most confident mistakes", table),
    ]
