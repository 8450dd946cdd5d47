"""What a policy is judged by: the return of whole episodes, their spread, and how long they last.

return         mean of Σ_t r_t over the episodes        return_spread    their standard deviation
length         mean number of steps
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch, Task

Play = Callable[[Callable[[Tensor], Tensor], Sequence[int]], dict[str, Tensor]]
"""(actions for observations, seeds) -> what each episode is worth, by name"""


class Playing(Task):
    """`play(act, seeds)` gives the return and length of whole episodes; a policy is judged by its greedy actions."""

    evidence = ("returns",)
    play: Play

    @abstractmethod
    def greedy(self, observation: Tensor) -> Tensor:
        """The action that the policy thinks best."""

    @torch.no_grad()
    def score(self, batch: Batch) -> dict[str, Tensor]:
        """What each episode is worth whose seed the batch names, played greedily."""
        found = self.play(self.greedy, batch["seed"].tolist())
        return found | {"returns": found["return"]}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        return means | {"return_spread": float(evidence["returns"].double().std(correction=0))}
