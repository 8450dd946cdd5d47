"""Recurrent text classification recipes: texts, a vocabulary of their words, a TextClassifier."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from descend.data.streams.shards import process
from descend.data.text.sentiment import Batch, Opinions, ShuffledTexts, TextsInOrder
from descend.engine.protocol import Exhibit, Parts
from descend.errors import Mistake
from descend.kinds.recipe import Recipe, micro_batch
from descend.metrics.classification import confusion
from descend.models import load, model_folder
from descend.models.text_classifier import TextClassifier, TextClassifierConfig
from descend.ops.sequences import pad
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.classify import Classify
from descend.text.tokenizer import Tokenizer
from descend.text.word_evidence import begin_with, word_evidence
from descend.weights.folder import write_json
from descend.weights.layout import read_json

FILE = "classes.json"
SHOWN = 8  # texts in the report


@dataclass(frozen=True)
class OpinionRecipe(Recipe):
    """A recurrent classifier of texts."""

    model: TextClassifierConfig = field(default_factory=TextClassifierConfig)
    data: Opinions = field(default_factory=Opinions)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)
    evidence: float = 0.0
    """How strongly the first word vectors tell what naive Bayes says of their words; 0: they are random."""

    def arrays(self) -> tuple[dict[str, Batch], Tokenizer, list[str]]:
        """The three parts as tensors, the words, the names of the classes."""
        parts = self.data.read()
        names, tokenizer = sorted(set(parts["train"].labels)), self.data.learn_tokenizer(parts["train"])
        return {name: self.data.arrays(part, tokenizer, names) for name, part in parts.items()}, tokenizer, names

    def build(self) -> Parts:
        loop = self.loop
        arrays, tokenizer, names = self.arrays()
        torch.manual_seed(loop.seed)
        if self.model.head == "each":
            raise Mistake("--model.head each: a text has one label here; choose attention or last")
        try:
            model = TextClassifier(replace(self.model, vocab=tokenizer.vocab, classes=len(names)))
        except ValueError as error:
            raise Mistake(f"--model: {error}") from None
        if self.evidence:
            train = arrays["train"]
            begin_with(
                model.embed.weight, word_evidence(train["x"], train["y"], tokenizer.vocab, len(names)), self.evidence
            )
        micro = micro_batch(loop, loop.batch)

        def save(folder: Path) -> None:
            tokenizer.save(folder)
            write_json(folder / FILE, {"classes": names})

        return Parts(
            task=Classify(model),
            model=model,
            stream=ShuffledTexts(arrays["train"], loop.batch, micro, loop.seed, *process()),
            valid=TextsInOrder(arrays["valid"], 256),
            optims={"model": self.optim},
            unit="texts",
            units_per_batch=loop.batch,
            facts={
                "data": self.data.path or "generated opinions",
                **{f"{name} texts": len(part["y"]) for name, part in arrays.items()},
                "classes": ", ".join(names),
                "vocabulary": tokenizer.vocab,
                "unknown words": f"{unknown(arrays['valid'], tokenizer):.1%} of the validation words",
            },
            save_extra=save,
            exhibits=lambda: look(model, arrays["valid"], tokenizer, names),
        )

    def test(self) -> Iterable[Batch]:
        """The test texts."""
        return TextsInOrder(self.arrays()[0]["test"], 256)


def unknown(arrays: Batch, tokenizer: Tokenizer) -> float:
    """Share of the words that the training texts do not have."""
    words = arrays["x"][arrays["x"] != 0]
    return float((words == tokenizer.vocab - 1).float().mean())


def look(model: TextClassifier, arrays: Batch, tokenizer: Tokenizer, names: list[str]) -> list[Exhibit]:
    """What is taken for what, the most confident mistakes, and the words that counted most in them."""
    where = next(model.parameters()).device
    p = torch.cat([model(b["x"].to(where)).softmax(dim=-1).cpu() for b in TextsInOrder(arrays, 256)])
    predicted, y = p.argmax(dim=-1), arrays["y"]
    counts = {"labels": names, "counts": confusion(predicted, y, len(names)).tolist()}
    sure = torch.where(predicted == y, -1.0, p.amax(dim=-1))
    rows = []
    for i in [i for i in sure.argsort(descending=True)[:SHOWN].tolist() if sure[i] > 0]:
        x = arrays["x"][i : i + 1]
        x = x[:, x[0] != 0].to(where)
        words = [tokenizer.decode([token]) for token in x[0].tolist()]
        best = ""
        if model.config.head == "attention":
            best = ", ".join(words[j] for j in model.weights(x)[0].topk(min(3, len(words))).indices.tolist())
        rows.append([names[int(y[i])], f"{names[int(predicted[i])]} {float(sure[i]):.0%}", best, " ".join(words)[:160]])
    table = {"columns": ["true", "called", "counted most", "text"], "rows": rows}
    return [
        Exhibit("confusion", "What is taken for what", counts, "Validation texts, best checkpoint."),
        Exhibit("table", "Most confident mistakes", table),
    ]


@torch.no_grad()
def classify(folder: str | Path, texts: list[str]) -> list[dict[str, float]]:
    """The probability of every class for each text, by a trained run or model folder."""
    model, folder = load(folder), model_folder(folder)
    if not isinstance(model, TextClassifier):
        raise Mistake(f"{folder} holds a {type(model).__name__}, which classifies no texts")
    names = read_json(folder / FILE)["classes"]
    x, _ = pad([torch.tensor(ids or [0]) for ids in Tokenizer.load(folder).encode_many(texts)])
    return [dict(zip(names, row, strict=True)) for row in model(x).softmax(dim=-1).tolist()]
