"""Small flows with a batch of eight for the contract of tasks.

A continuous flow takes fixed steps here: an adaptive solver chooses its steps by the whole batch, so a split batch
agrees with it within the solver's tolerance only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from descend.contracts import Batch, Task
from descend.models import cnf, flow_matching, maf
from descend.tasks.density import EstimatedLikelihood, MaximumLikelihood
from descend.tasks.flow_matching import MatchDensity, MatchVelocity

B = 8


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def likelihood_case() -> tuple[Task, Batch]:
    return MaximumLikelihood(maf.MAF(maf.TINY)), {"x": numbers(B, 3), "log_p": numbers(B)}


def estimated_case() -> tuple[Task, Batch]:
    model = cnf.CNF(replace(cnf.TINY, method="rk4", steps=3))
    return EstimatedLikelihood(model), {"x": numbers(B, 3), "eps": numbers(B, 3)}


def match_case(kind: Callable[..., Task]) -> tuple[Task, Batch]:
    model = flow_matching.FlowMatching(replace(flow_matching.TINY, method="rk4", steps=3))
    return kind(model, 0.1), {"x": numbers(B, 3), "noise": numbers(B, 3), "t": torch.rand(B)}


CASES: dict[str, Callable[[], tuple[Task, Batch]]] = {
    "EstimatedLikelihood": estimated_case,
    "MatchDensity": lambda: match_case(MatchDensity),
    "MatchVelocity": lambda: match_case(MatchVelocity),
    "MaximumLikelihood": likelihood_case,
}
