"""Recurrent text classification recipes: texts, a vocabulary of their words, a TextClassifier."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from descend.data.streams.shards import process
from descend.data.text.sentiment import Batch, OpinionParts, Opinions, ShuffledTexts, TextsInOrder, TextSplit
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.files import items, read_json, write_json
from descend.kinds.recipe import Judged, Recipe, describe_batch, fit_batch, micro_batch
from descend.kinds.text_columns import read_unseen_texts
from descend.models.text_classifier import TextClassifier, TextClassifierConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.ranges import NonNegative
from descend.tasks.classify import Classify
from descend.text.tokenizer import Tokenizer
from descend.text.word_evidence import begin_with, word_evidence
from descend.views.text_labels import show_opinions

FILE = "classes.json"


@dataclass(frozen=True)
class OpinionRecipe(Recipe):
    """A recurrent classifier of texts."""

    model: TextClassifierConfig = field(default_factory=TextClassifierConfig)
    data: Opinions = field(default_factory=Opinions)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)
    evidence: NonNegative = 0.0
    """How strongly word vectors are initialised with naive Bayes log-odds; 0: random."""

    def arrays(self, read: OpinionParts) -> tuple[dict[str, Batch], Tokenizer, list[str]]:
        """The three parts as tensors, the words, the names of the classes."""
        names, tokenizer = sorted(set(read["train"].labels)), self.data.learn_tokenizer(read["train"])
        return {name: self.data.arrays(part, tokenizer, names) for name, part in read.parts.items()}, tokenizer, names

    def build(self) -> Parts:
        loop = self.loop
        read = self.data.read()
        arrays, tokenizer, names = self.arrays(read)
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
        batch = fit_batch(loop, len(arrays["train"]["y"]))
        micro = micro_batch(loop, batch)

        def save(folder: Path) -> None:
            tokenizer.save(folder)
            write_json(folder / FILE, {"classes": names})

        return Parts(
            task=Classify(model),
            model=model,
            stream=ShuffledTexts(arrays["train"], batch, micro, loop.seed, *process()),
            valid=TextsInOrder(arrays["valid"], 256),
            optims={"model": self.optim},
            unit="texts",
            units_per_batch=batch,
            facts={
                "data": self.data.path or "generated opinions",
                **{f"{name} texts": len(part["y"]) for name, part in arrays.items()},
                "classes": ", ".join(names),
                **read.facts,
                "vocabulary": tokenizer.vocab,
                "unknown words": f"{share_unknown(arrays['valid'], tokenizer):.1%} of the validation words",
                **describe_batch(loop, batch),
            },
            save_extra=save,
            exhibits=lambda: show_opinions(model, arrays["valid"], tokenizer, names),
        )

    def test(self) -> Iterable[Batch]:
        """The test texts."""
        return TextsInOrder(self.arrays(self.data.read())[0]["test"], 256)

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """Every text of a file, by the labels that the model knows."""
        names = items(read_json(folder / FILE), "classes", str, folder / FILE)
        records, _ = read_unseen_texts(path, folder, names)
        texts = TextSplit(records.texts, records.labels, records.lines)
        return Judged(Classify(model), TextsInOrder(self.data.arrays(texts, Tokenizer.load(folder), names), 256))


def share_unknown(arrays: Batch, tokenizer: Tokenizer) -> float:
    """Share of the words that the training texts do not have."""
    words = arrays["x"][arrays["x"] != 0]
    return float((words == tokenizer.vocab - 1).float().mean())
