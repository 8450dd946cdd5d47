"""Classes of texts: p(k | text) = softmax(z)_k, by an encoder with a head (BERT) or a recurrent classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from descend.data.text.table import Wanted
from descend.errors import Mistake
from descend.files import items, read_json
from descend.inference.answers import Answer, rank_classes, with_records
from descend.inference.inputs import read_texts
from descend.inference.trained import BATCH, Trained
from descend.kinds.sentiment import FILE as CLASSES
from descend.kinds.text_columns import read_run_columns
from descend.models.text_classifier import TextClassifier
from descend.ops.sequences import pad
from descend.tasks.fine_tune import run_encoder
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer

HEAD = "ForSequenceClassification"  # how public names of encoders that classify texts end


@dataclass(frozen=True)
class SentenceClassifier:
    """Class probabilities of texts."""

    logits: Callable[[Sequence[str], Sequence[str]], Tensor]
    """Texts, and the second texts of pairs ("" where there is none) -> z (n, K)"""
    labels: tuple[str, ...]
    trained: Trained
    columns: Wanted = field(default_factory=Wanted)
    """Of the run's own data."""
    takes = "texts"

    @torch.no_grad()
    def classify(self, texts: Sequence[str], seconds: Sequence[str] = ()) -> list[Answer]:
        """The classes of each text, or pair of texts."""
        pieces = [slice(i, i + BATCH) for i in range(0, len(texts), BATCH)]
        seconds = seconds or [""] * len(texts)
        rows = [self.trained.probabilities(self.logits(texts[piece], seconds[piece])).cpu() for piece in pieces]
        return rank_classes(texts, torch.cat(rows), self.labels)

    def predict(self, inputs: Sequence[str]) -> list[Answer]:
        """The same of texts and of files of texts."""
        given = read_texts(inputs, self.columns)
        return with_records(self.classify(given.texts, given.seconds), given.records, given.truths)


def read_classes(path: Path, count: int) -> tuple[str, ...]:
    """The names of the classes, one for each that the model tells apart."""
    names = tuple(items(read_json(path), "classes", str, path))
    if len(names) != count:
        raise Mistake(f"{path} names {len(names)} classes, but the model has {count}")
    return names


def classifies_texts(trained: Trained) -> bool:
    """Whether the model is one that classifies texts."""
    return isinstance(trained.model, TextClassifier) or trained.kind.endswith(HEAD)


def open_sentence_classifier(trained: Trained) -> SentenceClassifier:
    """With the tokenizer and the classes beside the weights."""
    if not classifies_texts(trained):
        raise Mistake(f"{trained.folder} holds a {trained.kind}, which does not classify texts")
    model, tokenizer, device = trained.model, Tokenizer.load(trained.folder), trained.device
    columns = read_run_columns(trained.folder)
    if isinstance(model, TextClassifier):

        def recurrent_logits(texts: Sequence[str], seconds: Sequence[str]) -> Tensor:
            if any(seconds):
                raise Mistake(f"{trained.folder} classifies single texts; leave out the column of second texts")
            x, _ = pad([torch.tensor(ids or [0]) for ids in tokenizer.encode_many(list(texts))])
            return model(x.to(device))

        names = read_classes(trained.folder / CLASSES, model.config.classes)
        return SentenceClassifier(recurrent_logits, names, trained, columns)
    inputs = Inputs.of(tokenizer, model.longest)

    def encoder_logits(texts: Sequence[str], seconds: Sequence[str]) -> Tensor:
        pairs = zip(texts, seconds, strict=True)
        batch = inputs.batch([inputs.encode(first, second or None) for first, second in pairs])
        return run_encoder(model, {name: x.to(device) for name, x in batch.items()})

    return SentenceClassifier(encoder_logits, model.config.labels.names, trained, columns)
