"""Exact nearest neighbours beside FAISS's IndexFlatIP: 100,000 vectors of 384 numbers, the 10 best, one thread.

A query at a time is bound by the reading of the vectors, 64 queries at once by the multiplication.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from benchmarks.turns import take_turns

VECTORS, WIDTH, BEST = 100_000, 384, 10
AT_ONCE = (1, 64)


def draw(count: int, seed: int) -> torch.Tensor:
    return torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(seed))


def ours(count: int) -> Callable[[], object]:
    torch.set_num_threads(1)
    from descend.classic.nearest import InnerProductSearch

    search, queries = InnerProductSearch(draw(VECTORS, 0)), draw(count, 1)
    return lambda: search.search(queries, BEST)


def theirs(count: int) -> Callable[[], object]:
    import faiss

    faiss.omp_set_num_threads(1)
    index, queries = faiss.IndexFlatIP(WIDTH), draw(count, 1).numpy()
    index.add(draw(VECTORS, 0).numpy())
    return lambda: index.search(queries, BEST)


ours_1, theirs_1 = partial(ours, 1), partial(theirs, 1)
ours_64, theirs_64 = partial(ours, 64), partial(theirs, 64)


def measure(rounds: int = 7) -> list[dict[str, object]]:
    names = [f"{side}_{count}" for side in ("ours", "theirs") for count in AT_ONCE]
    times, memory = take_turns({name: f"benchmarks.exact_search:{name}" for name in names}, rounds, 3)
    found: list[dict[str, object]] = []
    for count in AT_ONCE:
        speed = {side: count / min(times[f"{side}_{count}"]) for side in ("ours", "theirs")}
        share = memory[f"ours_{count}"] / memory[f"theirs_{count}"]
        found.append(
            {"name": f"exact search, {count} {'query' if count == 1 else 'queries'} at a time", **speed,
             "unit": "queries/s", "ratio": speed["ours"] / speed["theirs"], "bar": 1.0,
             "note": f"faiss IndexFlatIP; {VECTORS:,} vectors of {WIDTH}; memory {share:.2f} of its"}
        )  # fmt: skip
    return found


if __name__ == "__main__":
    for row in measure():
        print(row)
