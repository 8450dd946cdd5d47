"""Bag of words: a document as one vector, whatever its length.

    count      Σ_t e_{x_t}            the sum of the one-hot vectors: how often each word occurs
    mean       count / T
    multi-hot  1 where count > 0      which words occur

The dimension is |V| + 1, with `<unk>` last. Order is lost: "The food was good, not bad" and "The food was bad, not
good" have one vector, so every classifier gives them one answer. `models.mlp` with no hidden layer is the classifier.

Systems: bag-of-words
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from descend.ops.embedding import check, one_hot


def counts(documents: Sequence[Tensor], size: int) -> Tensor:
    """Numbers of the words of each document -> (documents, size)."""
    lengths = torch.tensor([len(d) for d in documents], dtype=torch.long)
    flat = torch.cat([torch.empty(0, dtype=torch.long), *documents])
    check(flat, size)
    row = torch.arange(len(documents)).repeat_interleave(lengths)
    return torch.bincount(row * size + flat, minlength=len(documents) * size).reshape(len(documents), size).float()


def mean(documents: Sequence[Tensor], size: int) -> Tensor:
    """Counts over lengths; an empty document is all zeros."""
    found = counts(documents, size)
    return found / found.sum(dim=1, keepdim=True).clamp_min(1)


def multi_hot(documents: Sequence[Tensor], size: int) -> Tensor:
    """1 for a word that occurs."""
    return (counts(documents, size) > 0).float()


def rows(document: Tensor, size: int) -> Tensor:
    """A document as a matrix of one-hot rows (t, size), whose sum is `counts`."""
    return one_hot(document, size)
