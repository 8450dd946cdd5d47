"""A slow copy of a network that follows it: the momentum encoder of MoCo and BYOL, the target encoder of I-JEPA.

    θ_k ← m θ_k + (1 − m) θ_q           after every step; θ_k never takes a gradient

The copy's batch norms gather statistics of their own, from what it sees itself.

Systems: moco, byol
"""

from __future__ import annotations

import copy
import math
from typing import TypeVar

import torch
from torch import nn

Network = TypeVar("Network", bound=nn.Module)


def slow_copy(module: Network) -> Network:
    """A copy that takes no gradient."""
    return copy.deepcopy(module).requires_grad_(False)


@torch.no_grad()
def follow(target: nn.Module, online: nn.Module, momentum: float) -> None:
    """θ_k ← m θ_k + (1 − m) θ_q of every parameter."""
    for old, new in zip(target.parameters(), online.parameters(), strict=True):
        old.mul_(momentum).add_(new, alpha=1 - momentum)


def rising_momentum(least: float, step: int, steps: int) -> float:
    """1 − (1 − m₀)(cos(π k / K) + 1)/2: from m₀ at the first step to 1 at the last (BYOL, I-JEPA)."""
    return 1 - (1 - least) * (math.cos(math.pi * min(step / max(steps, 1), 1.0)) + 1) / 2
