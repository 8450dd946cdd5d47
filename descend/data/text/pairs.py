"""Pairs of texts for next-sentence prediction: half of the time B is what follows A, half of the time it is not.

    documents   separated by two or more empty lines        sentences   end with . ! ? or with an empty line
    pair i      A = sentence i;  B = sentence i + 1 of the document (y = 0), or a sentence of another document (y = 1)

Classes are those of the released BERT: 0 means "it follows". A random sentence is mostly about something else, so a
model that compares topics solves the task without reading (VOM 13.3.2); RoBERTa leaves it out.

Systems: next-sentence-prediction
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch

from descend.data.streams.arrays import generator
from descend.errors import Mistake

FOLLOWS, RANDOM = 0, 1


@dataclass(frozen=True)
class Pair:
    """Two texts, and 0 where the second follows the first, else 1."""

    a: str
    b: str
    y: int


def documents(text: str, shortest: int = 20) -> list[list[str]]:
    """The sentences of each document of a text; those with fewer than `shortest` characters are left out."""
    found = []
    for document in re.split(r"\n\s*\n\s*\n", text):
        pieces = [" ".join(piece.split()) for piece in re.split(r"(?<=[.!?])\s+|\n\s*\n", document)]
        sentences = [piece for piece in pieces if len(piece) >= shortest]
        if sentences:
            found.append(sentences)
    return found


def next_sentence_pairs(texts: list[list[str]], seed: int = 0) -> list[Pair]:
    """A pair for every sentence that has a next one; exactly half of them (rounded) get a random second text."""
    owner = torch.tensor([d for d, sentences in enumerate(texts) for _ in sentences], dtype=torch.long)
    flat = [sentence for sentences in texts for sentence in sentences]
    if len(texts) < 2:
        raise Mistake("next-sentence pairs need two documents or more; separate them by two empty lines")
    first = (owner[:-1] == owner[1:]).nonzero()[:, 0]
    random = generator(seed, len(flat))
    y = (torch.arange(len(first)) % 2)[torch.randperm(len(first), generator=random)]
    other = elsewhere(owner, owner[first], random)
    b = torch.where(y == FOLLOWS, first + 1, other)
    return [Pair(flat[i], flat[j], k) for i, j, k in zip(first.tolist(), b.tolist(), y.tolist(), strict=True)]


def elsewhere(owner: torch.Tensor, mine: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """For each of `mine` (n) a sentence of another document, all of them equally likely. `owner` is sorted."""
    start, stop = torch.searchsorted(owner, mine), torch.searchsorted(owner, mine, right=True)
    room = len(owner) - (stop - start)
    drawn = (torch.rand(len(mine), generator=random, dtype=torch.float64) * room).long()
    return drawn + (drawn >= start) * (stop - start)
