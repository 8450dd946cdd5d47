"""BM25: which documents have the words of the query, the rare words above all? The baseline of every search.

    s(q, d) = Σ_{w in q} idf(w) · f(w, d) (k₁ + 1) / (f(w, d) + k₁ (1 − b + b |d| / mean |d|))
    idf(w) = log(1 + (N − n_w + ½) / (n_w + ½))

f(w, d) is how often w is in d, n_w in how many of the N documents it is. k₁ says how soon more of the same word counts
no more, b how much long documents are held back (b = 0: not at all). A word that is twice in the query counts twice,
one that no document has counts nothing.

The books say "keyword match" and print no formula (DLD 6.14). This is the one of Robertson, with the idf of Lucene,
whose "1 +" keeps it above 0 for a word that most documents have. Its defaults are k₁ = 1.2 and b = 0.75.

All shares s are computed once, at `fit`: a query is then a product of sparse matrices.

Systems: cross-and-bi-encoder
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from descend.errors import Mistake
from descend.ops.keywords import keywords


class BM25:
    """Keyword search; `split` makes words of a text."""

    def __init__(self, k1: float = 1.2, b: float = 0.75, split: Callable[[str], Sequence[str]] = keywords):
        if k1 < 0 or not 0 <= b <= 1:
            raise Mistake(f"k1 = {k1}, b = {b}: k1 is 0 or more, b between 0 and 1")
        self.k1, self.b, self.split = k1, b, split

    def fit(self, documents: Sequence[str]) -> BM25:
        """Learn the words of the documents."""
        if not documents:
            raise Mistake("there are no documents to search")
        words = [self.split(document) for document in documents]
        self.number = {word: i for i, word in enumerate(sorted({word for one in words for word in one}))}
        f = self._count(words)
        length = np.asarray(f.sum(1))[:, 0]
        n, has = len(documents), np.diff(f.tocsc().indptr)
        self.idf = np.log1p((n - has + 0.5) / (has + 0.5))
        held_back = self.k1 * (1 - self.b + self.b * length / max(length.mean(), 1e-12))
        share = f.tocoo()
        value = share.data * (self.k1 + 1) / (share.data + held_back[share.row]) * self.idf[share.col]
        self.weight = sparse.csr_matrix((value, (share.col, share.row)), shape=f.shape[::-1])
        return self

    def score(self, queries: Sequence[str]) -> Tensor:
        """s of every query and document: (queries, documents)"""
        found = self._count([self.split(query) for query in queries]) @ self.weight
        return torch.from_numpy(found.toarray())

    def search(self, queries: Sequence[str], k: int) -> tuple[Tensor, Tensor]:
        """The scores and numbers of the k best documents of each query (queries, k); of equals the first."""
        scores = self.score(queries)
        best = scores.sort(dim=1, descending=True, stable=True)
        return best.values[:, :k], best.indices[:, :k]

    def _count(self, words: Sequence[Sequence[str]]) -> sparse.csr_matrix:
        """How often each known word is in each text (texts, words)."""
        rows, columns, values = [], [], []
        for row, one in enumerate(words):
            for word, times in Counter(one).items():
                if (column := self.number.get(word)) is not None:
                    rows.append(row)
                    columns.append(column)
                    values.append(float(times))
        return sparse.csr_matrix((values, (rows, columns)), shape=(len(words), len(self.number)))
