"""The scores of a set of batches: means over examples, and what only the whole set can say.

    mean      Σ values / their number, over all batches, whatever their sizes
    set       collected as evidence batch by batch, judged once (mean IoU, BLEU, perplexity: `contracts.Task.judge`)

Training, `descend evaluate` and every process of a distributed run take their scores from here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch, Task


@torch.no_grad()
def score_set(task: Task, batches: Iterable[Batch]) -> dict[str, float]:
    """The task's scores in evaluation mode; nothing where there are no batches."""
    totals: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    evidence: dict[str, list[Any]] = defaultdict(list)
    training = task.training
    task.eval()
    try:
        for batch in batches:
            for name, values in task.score(batch).items():
                if name in task.evidence:
                    evidence[name].append(values)
                else:
                    totals[name] += values.double().sum().item()
                    counts[name] += values.numel()
    finally:
        task.train(training)
    means = {name: total / max(counts[name], 1) for name, total in totals.items()}
    if not (means or evidence):
        return {}
    return task.judge(means, {name: join_evidence(parts) for name, parts in evidence.items()})


def join_evidence(parts: list[Any]) -> Any:
    """Tensors end to end along the first axis; lists appended."""
    if isinstance(parts[0], Tensor):
        return torch.cat([part.cpu() for part in parts])
    return [item for part in parts for item in part]
