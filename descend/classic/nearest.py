"""Exact nearest-neighbour search among vectors: by inner product, or by cosine.

    inner product    s_ij = q_i · x_j
    cosine           s_ij = q_i · x_j / |q_i| |x_j|            the inner product of vectors of length 1
    found            the k largest s_ij of each query, largest first

Every vector is compared with every query, so nothing is missed; the memory is that of a block of scores, however many
vectors there are. The k largest of a row are found in two steps: cut the row into pieces of c; the k largest lie in the
k pieces with the largest maxima (or in one that is as large), so only k c numbers are compared one by one.

The index of document vectors is this: `add` what is new, and it is found by the next query (DLN-B.84).

Systems: sentence-similarity, cross-and-bi-encoder
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from descend.errors import Mistake

SCORES = 2**21  # numbers of a block of scores: 8 MB, what a cache may still hold
FEW = 8  # queries that the reading of the vectors bounds
PIECE = 64  # scores of which the largest is found first


class InnerProductSearch:
    """Vectors (n, d) to search in; `found` says which of them are nearest."""

    def __init__(self, x: Tensor):
        self.x = self.prepare(x)

    def __len__(self) -> int:
        return len(self.x)

    def prepare(self, x: Tensor) -> Tensor:
        """The vectors as they are compared."""
        if x.dim() != 2 or not x.is_floating_point():
            raise Mistake(f"vectors to search in are (number, width) of floating point, not {tuple(x.shape)}")
        if not x.isfinite().all():
            raise Mistake("vectors to search in hold NaN or infinity; the model that made them is broken")
        return x.contiguous()

    def add(self, x: Tensor) -> None:
        """More vectors, numbered on from the last one."""
        self.x = torch.cat([self.x, self.prepare(x)])

    @torch.no_grad()
    def search(self, queries: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Scores and numbers of the k nearest vectors of each query: (queries, k), (queries, k)"""
        q = self.prepare(queries)
        if q.shape[1] != self.x.shape[1]:
            raise Mistake(f"queries have {q.shape[1]} numbers, the vectors {self.x.shape[1]}: use the same encoder")
        if not 1 <= k <= len(self.x):
            raise Mistake(f"the {k} nearest of {len(self.x)} vectors: k is between 1 and their number")
        rows = max(1, min(len(q), 64))
        columns = max(SCORES // rows, 8 * k, PIECE)
        found = [self._search_rows(piece, k, columns) for piece in q.split(rows)]
        values, numbers = ([one[i] for one in found] for i in (0, 1))
        return torch.cat(values), torch.cat(numbers)

    def _search_rows(self, q: Tensor, k: int, columns: int) -> tuple[Tensor, Tensor]:
        """The best of one block of vectors after another."""
        best: tuple[Tensor, Tensor] | None = None
        for start in range(0, len(self.x), columns):
            values, numbers = largest(multiply(q, self.x[start : start + columns]), k)
            numbers = numbers + start
            if best is not None:
                values, numbers = torch.cat([best[0], values], 1), torch.cat([best[1], numbers], 1)
                values, at = values.topk(k, dim=1)
                numbers = numbers.gather(1, at)
            best = values, numbers
        assert best is not None
        return best


class CosineSearch(InnerProductSearch):
    """The same by cosine; a vector 0 is like nothing."""

    def prepare(self, x: Tensor) -> Tensor:
        return normalize(super().prepare(x), dim=1)


def multiply(q: Tensor, x: Tensor) -> Tensor:
    """q_i · x_j (b, n). A few queries are bound by the reading of x, and torch's product of one row and a matrix reads
    it at half the speed that the memory allows; so one query goes through numpy's, and a few stand as columns."""
    if q.device.type != "cpu" or len(q) > FEW:
        return q @ x.T
    if len(q) == 1:
        return torch.from_numpy(x.numpy() @ q[0].numpy())[None]
    return (x @ q.T).T.contiguous()


def largest(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest (or all) of each row (b, n), largest first, and where they stand."""
    b, n = scores.shape
    pieces = n // PIECE
    if pieces < 4 * k:
        found = scores.topk(min(k, n), dim=1)
        return found.values, found.indices
    whole = scores[:, : pieces * PIECE].unflatten(1, (pieces, PIECE))
    chosen = whole.amax(dim=2).topk(k, dim=1).indices
    values = whole.gather(1, chosen[:, :, None].expand(-1, -1, PIECE)).flatten(1)
    at = (chosen[:, :, None] * PIECE + torch.arange(PIECE, device=scores.device)).flatten(1)
    rest = torch.arange(pieces * PIECE, n, device=scores.device).expand(b, -1)
    values, at = torch.cat([values, scores[:, pieces * PIECE :]], 1), torch.cat([at, rest], 1)
    found = values.topk(k, dim=1)
    return found.values, at.gather(1, found.indices)
