"""Approximate nearest-neighbour search, through FAISS: faster than the exact one, and now and then it misses.

    HNSW   a graph of neighbours in layers: walk from vector to vector, towards the query; `explore` are kept in mind
    IVF    k-means cuts the vectors into `cells`; only the `probes` cells nearest to the query are looked through

Both find by cosine, as vectors are made to length 1 first. How much they miss is measured as recall: of the k that the
exact search finds, the share that they find, too. DLN-B.84 names "approximate" search and says no more.

Systems: rag
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from descend.errors import Mistake


class ApproximateSearch:
    """What both have in common: an index of FAISS over vectors of length 1."""

    def __init__(self, x: Tensor, index: Any):
        self.index = index
        self.add(x)

    def __len__(self) -> int:
        return int(self.index.ntotal)

    def add(self, x: Tensor) -> None:
        """More vectors, numbered on from the last one."""
        self.index.add(unit_rows(x))

    def search(self, queries: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Cosines and numbers of k near vectors of each query (queries, k); −1 where fewer were met."""
        values, numbers = self.index.search(unit_rows(queries), k)
        return torch.from_numpy(values), torch.from_numpy(numbers)


class HnswSearch(ApproximateSearch):
    """`links` of each vector to others, `explore` vectors kept in mind by a search, `build` while the graph is made."""

    def __init__(self, x: Tensor, links: int = 32, explore: int = 64, build: int = 80):
        faiss = load_faiss()
        index = faiss.IndexHNSWFlat(x.shape[1], links, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction, index.hnsw.efSearch = build, explore
        super().__init__(x, index)


class IvfSearch(ApproximateSearch):
    """`cells` of the vectors, of which a search looks through `probes`."""

    def __init__(self, x: Tensor, cells: int = 64, probes: int = 8):
        faiss = load_faiss()
        if not 1 <= probes <= cells <= len(x):
            raise Mistake(f"{probes} probes of {cells} cells of {len(x)} vectors: none may be more than the next")
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(x.shape[1]), x.shape[1], cells, faiss.METRIC_INNER_PRODUCT)
        index.cp.min_points_per_centroid = 1  # no warning on small collections
        index.train(unit_rows(x))
        index.nprobe = probes
        super().__init__(x, index)


def load_faiss() -> Any:
    """The package, or how to get it."""
    try:
        return import_module("faiss")
    except ImportError:
        raise Mistake(
            'approximate search needs FAISS: pip install "descend[rag]" (exact search does without)'
        ) from None


def unit_rows(x: Tensor) -> np.ndarray[Any, np.dtype[np.float32]]:
    return normalize(x.float(), dim=1).contiguous().numpy()


def share_found(found: Tensor, exact: Tensor) -> float:
    """recall: of the numbers that exact search found (n, k), the share that is in the others, too."""
    return float((exact[:, :, None] == found[:, None, :]).any(2).double().mean())
