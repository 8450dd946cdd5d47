"""What a search shows: how high the right documents come, beside keyword search, and queries where they do not."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from descend.contracts import Exhibit
from descend.metrics.retrieval import mean_reciprocal_rank, pairs, recall

SHOWN, LETTERS = 8, 160
DEPTHS = (1, 3, 10)


def show_ranks(scores: Tensor, matches: Sequence[tuple[str, ...]], keywords: Tensor) -> list[Exhibit]:
    """Scores (queries, documents) of the model and of keyword search; matches begin with query and document."""
    n = len(scores)
    rows = []
    for name, s in (("this model", scores), ("keywords (BM25)", keywords)):
        found = [f"{recall(s, pairs(n), min(k, n)):.3f}" for k in DEPTHS]
        rows.append([name, *found, f"{mean_reciprocal_rank(s, pairs(n)):.3f}"])
    columns = ["", *(f"recall@{k}" for k in DEPTHS), "MRR"]
    rank = (scores > scores.diagonal()[:, None]).sum(1)
    worst = rank.argsort(descending=True)[:SHOWN].tolist()
    found_first = scores.argmax(1).tolist()
    missed = [
        [matches[i][0][:LETTERS], str(int(rank[i]) + 1), matches[i][1][:LETTERS], matches[found_first[i]][1][:LETTERS]]
        for i in worst
        if rank[i]
    ]
    note = f"{n} queries, each against the {n} documents of the validation part."
    return [
        Exhibit("table", "Right documents among the best", {"columns": columns, "rows": rows}, note),
        Exhibit("table", "Furthest from found",
                {"columns": ["query", "rank", "right document", "found instead"], "rows": missed}),
    ]  # fmt: skip
