"""Classes of texts: p(k | text) = softmax(z)_k, by an encoder with a head (BERT) or a recurrent classifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.inference.answers import Answer, rank_classes
from descend.inference.inputs import read_texts
from descend.inference.trained import BATCH, Trained
from descend.kinds.sentiment import FILE as CLASSES
from descend.models.text_classifier import TextClassifier
from descend.ops.sequences import pad
from descend.tasks.fine_tune import run_encoder
from descend.text.inputs import Inputs
from descend.text.tokenizer import Tokenizer
from descend.weights.layout import read_json

HEAD = "ForSequenceClassification"  # how public names of encoders that classify texts end


@dataclass(frozen=True)
class SentenceClassifier:
    """Class probabilities of texts."""

    logits: Callable[[Sequence[str]], Tensor]
    """Texts -> z (n, K)"""
    labels: tuple[str, ...]
    takes = "texts"

    @torch.no_grad()
    def classify(self, texts: Sequence[str]) -> list[Answer]:
        """The classes of each text."""
        rows = [self.logits(texts[i : i + BATCH]).softmax(dim=-1).cpu() for i in range(0, len(texts), BATCH)]
        return rank_classes(texts, torch.cat(rows), self.labels)

    def predict(self, inputs: Sequence[str]) -> list[Answer]:
        """The same of texts and of files of texts."""
        return self.classify(read_texts(inputs))


def classifies_texts(trained: Trained) -> bool:
    """Whether the model is one that classifies texts."""
    return isinstance(trained.model, TextClassifier) or trained.kind.endswith(HEAD)


def open_sentence_classifier(trained: Trained) -> SentenceClassifier:
    """With the tokenizer and the classes beside the weights."""
    if not classifies_texts(trained):
        raise Mistake(f"{trained.folder} holds a {trained.kind}, which does not classify texts")
    model, tokenizer, device = trained.model, Tokenizer.load(trained.folder), trained.device
    if isinstance(model, TextClassifier):

        def recurrent_logits(texts: Sequence[str]) -> Tensor:
            x, _ = pad([torch.tensor(ids or [0]) for ids in tokenizer.encode_many(list(texts))])
            return model(x.to(device))

        return SentenceClassifier(recurrent_logits, tuple(read_json(trained.folder / CLASSES)["classes"]))
    inputs = Inputs.of(tokenizer, model.longest)

    def encoder_logits(texts: Sequence[str]) -> Tensor:
        batch = inputs.batch([inputs.encode(text) for text in texts])
        return run_encoder(model, {name: x.to(device) for name, x in batch.items()})

    return SentenceClassifier(encoder_logits, model.config.labels.names)
