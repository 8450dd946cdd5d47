"""The scores of a set of batches: means over examples, and what only the whole set can say.

    mean      Σ values / their number, over all batches, whatever their sizes
    set       collected as evidence batch by batch, judged once (mean IoU, BLEU, perplexity: `contracts.Task.judge`)

Training, `descend evaluate` and every process of a distributed run take their scores from here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch, Task
from descend.data.streams.batches import slice_examples
from descend.engine.hardware import widen
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.errors import Mistake, nearest

ROWS = 2  # examples that show which scores a task gives


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
                    totals[name] += widen(values).sum().item()
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


def check_watched(parts: Parts, loop: Loop) -> None:
    """Refuse a score to watch that the task does not give, by scoring two examples before anything is trained."""
    _, watched = loop.watched
    with torch.random.fork_rng():
        few = (slice_examples(batch, 0, ROWS) for batch in islice(parts.valid, 1))
        known = score_set(parts.task, few)
    if known and watched not in known:
        raise Mistake(
            f"--watch {loop.watch!r}: there is no score {watched!r}.{nearest(watched, known)} "
            f"Known: {', '.join(sorted(known))}"
        )
