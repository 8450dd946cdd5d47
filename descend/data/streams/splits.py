"""Cutting records into parts so that the test part tells the truth.

    by group    records that belong together (captions of an image, frames of a film) go to the same
                part: groups in a random order, each to the first part that is still short of its share
    together    equal records of parts that were cut otherwise go where the first of them is
    leaks       the same record in two parts: the model has seen the answer

Parts depend on the records alone, not on a run's seed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import torch
from torch import Tensor

from descend.data.streams.arrays import generator


def split_by_group(groups: Sequence[Hashable], shares: tuple[float, ...], seed: int = 0) -> list[Tensor]:
    """Rows of each part and, last, of the rest, in these shares of the records as nearly as whole groups allow."""
    rows: dict[Hashable, list[int]] = {}
    for i, group in enumerate(groups):
        rows.setdefault(group, []).append(i)
    members = list(rows.values())
    wanted = [share * len(groups) for share in shares]
    parts: list[list[int]] = [[] for _ in range(len(shares) + 1)]
    for g in torch.randperm(len(members), generator=generator(seed, len(members))).tolist():
        half = len(members[g]) / 2  # a group is taken where that brings the part nearer to its share
        short = (k for k, share in enumerate(wanted) if len(parts[k]) + half <= share)
        parts[next(short, len(shares))] += members[g]
    return [torch.tensor(sorted(part), dtype=torch.long) for part in parts]


def keep_together(records: Sequence[Hashable], parts: Sequence[Tensor]) -> list[Tensor]:
    """The parts with every record where its first equal is; the very same parts where all records differ."""
    first: dict[Hashable, int] = {}
    part = torch.empty(len(records), dtype=torch.long)
    for k, rows in enumerate(parts):
        part[rows] = k
    owner = torch.tensor([first.setdefault(record, i) for i, record in enumerate(records)], dtype=torch.long)
    return [(part[owner] == k).nonzero().flatten() for k in range(len(parts))]


def find_leaks(records: Sequence[Hashable], parts: Mapping[str, Tensor]) -> dict[str, list[int]]:
    """Rows of each held-out part whose record is also in the training part; parts without one are left out."""
    taught = {records[i] for i in parts["train"].tolist()}
    found = {
        part: [i for i in rows.tolist() if records[i] in taught] for part, rows in parts.items() if part != "train"
    }
    return {part: rows for part, rows in found.items() if rows}


def describe_leaks(records: Sequence[Hashable], parts: Mapping[str, Tensor]) -> dict[str, str]:
    """What a run says of its leaks; nothing where there are none."""
    leaks = find_leaks(records, parts)
    said = [f"{len(rows):,} of {len(parts[part]):,} {part} records" for part, rows in leaks.items()]
    return {"in training too": ", ".join(said)} if said else {}
