"""What every recipe is: frozen values that say what to train, and `build`, which makes the parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any

import tyro

from descend.contracts import Batch
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.errors import Mistake


@dataclass(frozen=True)
class Recipe:
    """Leaf values are flags (`--optim.lr 3e-4`); structure is Python (`replace(RECIPE, optim=SGD())`)."""

    about: tyro.conf.Suppress[str] = ""
    parameters: tyro.conf.Suppress[int] = 0  # of the model with the recipe's own data; a test counts them
    takes: tyro.conf.Suppress[str] = ""  # time of a run, measured on two cores
    model: Any = None
    data: Any = None
    optim: Any = None
    schedule: Any = None
    loop: Annotated[Loop, tyro.conf.arg(name="")] = field(default_factory=Loop)

    def build(self) -> Parts:
        """Read the data, make the model and the task. Nothing is trained yet."""
        raise NotImplementedError

    def test(self) -> Iterable[Batch]:
        """The held-out batches that report once; none where the data has no third part."""
        return ()


def micro_batch(loop: Loop, batch: int) -> int:
    """Examples in each of a step's micro-batches."""
    if batch % loop.accumulate:
        raise Mistake(f"--batch {batch} does not divide into --accumulate {loop.accumulate} micro-batches")
    return batch // loop.accumulate
