"""Worked examples of the family systems."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs
from descend.data.arrays import Shuffled
from descend.metrics.classification import top_k


def random_guess(i: Inputs) -> Inputs:
    """One fixed guess, with every class equally often the right one."""
    n = i["classes"]
    logits, y = torch.arange(float(n)).expand(n, n), torch.arange(n)
    return {f"top{k}_error": 1 - top_k(logits, y, k).double().mean() for k in (1, 5)}


def updates(n: int, batch: int) -> int:
    """Batches until the stream reaches the second epoch."""
    stream, count = Shuffled({"x": torch.zeros(n, 1)}, batch), 0
    while stream.cursor.epoch == 0:
        next(stream)
        count += 1
    return count


def batches_per_epoch(i: Inputs) -> Inputs:
    """The last batch of an epoch reaches into the next one, unless B divides N."""
    ceil = [updates(n, i["B"]) for n in i["N"]]
    return {"ceil": ceil, "floor": [c if c * i["B"] == n else c - 1 for c, n in zip(ceil, i["N"], strict=True)]}


EXAMPLES: dict[str, Compute] = {
    "DLN-ILSVRC-random": random_guess,
    "DLD-1.8-batches-per-epoch": batches_per_epoch,
}

SET_ASIDE: dict[str, str] = {}
