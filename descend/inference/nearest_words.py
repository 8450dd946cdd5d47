"""Words by their vectors: the words of highest cosine with a given one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from descend.errors import Mistake
from descend.inference.answers import Answer
from descend.inference.inputs import read_texts
from descend.inference.trained import Trained
from descend.metrics.word_vectors import Words
from descend.models.word_vectors import CBOW, GloVe, GloVeTriples, SkipGram
from descend.text.tokenizer import Tokenizer

NEAR = 100  # neighbours of each word, the nearest first


@dataclass(frozen=True)
class NearestWords:
    """The vectors of a vocabulary."""

    words: Words
    takes = "words"

    @classmethod
    @torch.no_grad()
    def read(cls, trained: Trained) -> NearestWords:
        """With the vocabulary beside the weights."""
        if not has_word_vectors(trained):
            raise Mistake(f"{trained.folder} holds a {trained.kind}, which has no word vectors")
        tokenizer, vectors = Tokenizer.load(trained.folder), trained.model.vectors().cpu()
        tokenizer.check_fits(len(vectors))
        unknown = tokenizer.special("unk_token")
        rows = [row for row in range(tokenizer.vocab) if row != unknown]
        return cls(Words([str(tokenizer.inner.id_to_token(row)) for row in rows], vectors[rows]))

    def find_near(self, word: str, count: int) -> Answer:
        """The nearest other words, by cosine."""
        return Answer(word, tuple(self.words.near(word.lower(), count)), measure="cosine")

    def predict(self, inputs: Sequence[str]) -> list[Answer]:
        """The neighbours of every word of texts and of files of texts."""
        words = list(dict.fromkeys(word for text in read_texts(inputs).texts for word in text.split()))
        if not words:
            raise Mistake("there is no word to look for; give at least one")
        return [self.find_near(word, NEAR) for word in words]


def has_word_vectors(trained: Trained) -> bool:
    """Whether the model is a table of word vectors."""
    return isinstance(trained.model, SkipGram | CBOW | GloVe | GloVeTriples)
