"""What a recipe builds: all that `fit` needs, and what the report shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from descend.contracts import Batch, Exhibit, Rule, Stream, Task
from descend.engine.fingerprint import Fingerprint
from descend.weights.pretrained import Pretrained


@dataclass
class Parts:
    """What a recipe builds: all that `fit` needs, and what the report shows."""

    task: Task
    model: Pretrained  # the model to save: one of the task's modules
    stream: Stream
    valid: Iterable[Batch]  # can be walked again and again; scored to select
    optims: dict[str, Rule]  # a rule for each player
    unit: str = "examples"  # what throughput counts, and how many of them one step has
    units_per_batch: int = 1
    facts: dict[str, Any] = field(default_factory=dict)  # data sizes and the like, for plan and report
    save_extra: Callable[[Any], None] | None = None  # files beside the model, e.g. tokenizer.json (given the folder)
    take_extra: Callable[[Any], None] | None = None  # reads them again, where scores need them (given the folder)
    snapshot: Callable[[], Tensor] | None = None  # images in 0..1 to keep at every evaluation: a generator's samples
    exhibits: Callable[[], list[Exhibit]] | None = None  # what this family deserves in the report
    fingerprint: Fingerprint | None = None  # of the data; None: a resume does not ask whether they are the same
