"""How good written answers are: exact match, BLEU, and how errors grow when a model reads its own words.

    exact match = share of the answers that are the reference, white space aside
    BLEU = BP · exp( ¼ Σ_{n=1..4} log p_n )        p_n: share of the n-grams that the reference has too
    error at position s, teacher-forced and free: the gap between the two is the exposure bias

BLEU is sacrebleu's, with the signature that makes it comparable; it is there when that package is installed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor

from descend.errors import Mistake


def exact_match(found: Sequence[str], references: Sequence[str]) -> float:
    """The share of answers that are right."""
    pairs = zip(found, references, strict=True)
    return sum(a.split() == b.split() for a, b in pairs) / len(references)


def overlap(found: Sequence[str], reference: Sequence[str]) -> float:
    """F1 of the words, each counted as often as it is there: 1 for the same words in any order."""
    both = sum((Counter(found) & Counter(reference)).values())
    return 2 * both / max(len(found) + len(reference), 1)


class Bleu(NamedTuple):
    """The score from 0 to 100, and how it was computed."""

    score: float
    signature: str


def bleu_is_there() -> bool:
    """Whether sacrebleu is installed."""
    return find_spec("sacrebleu") is not None


def bleu(found: Sequence[str], references: Sequence[str]) -> Bleu:
    """Corpus BLEU with one reference each."""
    if not bleu_is_there():
        raise Mistake("BLEU needs the package sacrebleu: pip install sacrebleu")
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU()
    score = metric.corpus_score(list(found), [list(references)])
    return Bleu(score.score, str(metric.get_signature()))


def error_by_position(found: Tensor, y: Tensor, pad: int) -> Tensor:
    """The share of wrong tokens at each target position: found and y (b, t) -> (t); NaN where no target reaches."""
    real = y != pad
    return ((found != y) & real).sum(0) / real.sum(0)


def as_rows(written: Sequence[Sequence[int]], t: int, pad: int) -> Tensor:
    """Written tokens as (b, t), cut or filled up."""
    return torch.tensor([[*row[:t], *[pad] * (t - len(row))] for row in written])
