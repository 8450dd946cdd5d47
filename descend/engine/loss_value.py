"""The loss that a training minimises, as one number over a set of batches.

    L = Σ_k (Σ_batches n_k L_k) / Σ_batches n_k         every term a mean over its own units, as in a step of training

It is measured in evaluation mode (no dropout, batch statistics as kept) and without gradients.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch

from descend.contracts import EVERY, Batch, Move, Task
from descend.data.streams.batches import count_examples
from descend.errors import Mistake


@torch.no_grad()
def measure_loss(task: Task, batches: Iterable[Batch]) -> float:
    """The loss of the first move of a task, over all batches; a task of several players has no single loss."""
    sums: dict[str, float] = defaultdict(float)
    counts: dict[str, float] = defaultdict(float)
    training = task.training
    task.eval()
    try:
        for batch in batches:
            move = next(iter(task.moves(batch)))
            units = move.units if isinstance(move, Move) else {}
            for name, value in move.value().terms.items():
                n = units.get(name, units.get(EVERY))
                weight = float(n.sum()) if n is not None else float(count_examples(batch))
                sums[name] += weight * float(value)
                counts[name] += weight
    finally:
        task.train(training)
    if not sums:
        raise Mistake("there is no batch to take the loss of: the data hold no such examples")
    return sum(sums[name] / max(counts[name], 1.0) for name in sums)
