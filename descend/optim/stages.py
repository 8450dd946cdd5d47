"""A learning rate that starts anew in every stage of a run.

η_t = curve(t − t_i, T_i)        in stage i, which begins at step t_i and has T_i steps
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from descend.optim.schedules import Cosine
from descend.ranges import PositiveShare, check


@dataclass(frozen=True)
class InStages:
    """The same curve in each stage."""

    shares: tuple[PositiveShare, ...] = (0.3, 0.7)
    """Of the steps that each stage has; they are brought to a sum of 1."""
    each: Cosine = field(default_factory=Cosine)

    def __post_init__(self) -> None:
        check(self, "schedule")

    def ends(self, steps: int) -> list[int]:
        """The step at which each stage ends; the last one is the run's."""
        total, passed, found = sum(self.shares), 0.0, []
        for share in self.shares:
            passed += share
            found.append(round(steps * passed / total))
        return found

    def __call__(self, step: int, steps: int) -> float:
        """The factor on the learning rate."""
        for start, end in pairwise([0, *self.ends(steps)]):
            if step < end:
                return self.each(step - start, end - start)
        return self.each(steps, steps)
