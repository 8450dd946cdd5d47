"""Optimizer rules as frozen values: what a recipe holds, and `build`, which makes torch's optimizer.

    SGD      v ← μ v + g,  θ ← θ − η v                         (MF's form; DLN and VOM put η inside the velocity)
    Adam     θ ← θ − η m̂ / (√v̂ + ε)                            (ε outside the root; MF has it inside)
    AdamW    θ ← θ − η (m̂ / (√v̂ + ε) + λ θ)                    (the second form of DLN-A.101: the decay is η λ)
    L-BFGS   θ ← θ − η H g, H from the last differences of θ and g, η by the strong Wolfe conditions

Weight decay acts on matrices only, never on biases and gains.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import DTensor


def decayed(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Parameter groups: matrices with decay, vectors without."""
    trained = [p for p in module.parameters() if p.requires_grad]
    matrices, vectors = [p for p in trained if p.dim() > 1], [p for p in trained if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def _fused(parameters: Iterable[torch.Tensor]) -> bool:
    """One kernel for the whole update, where torch has it (not for sharded tensors)."""
    return all(p.is_floating_point() and not isinstance(p, DTensor) for p in parameters)


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent with momentum."""

    lr: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0

    def build(self, module: nn.Module) -> torch.optim.Optimizer:
        groups = decayed(module, self.weight_decay)
        return torch.optim.SGD(groups, self.lr, self.momentum, fused=_fused(module.parameters()))


@dataclass(frozen=True)
class Adam:
    """Adam, without decay."""

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    def build(self, module: nn.Module) -> torch.optim.Optimizer:
        trained = [p for p in module.parameters() if p.requires_grad]
        return torch.optim.Adam(trained, self.lr, self.betas, self.eps, fused=_fused(trained))


@dataclass(frozen=True)
class AdamW:
    """Adam with decoupled weight decay."""

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01

    def build(self, module: nn.Module) -> torch.optim.Optimizer:
        groups = decayed(module, self.weight_decay)
        return torch.optim.AdamW(groups, self.lr, self.betas, self.eps, fused=_fused(module.parameters()))


@dataclass(frozen=True)
class LBFGS:
    """Limited-memory BFGS; each step evaluates the loss several times, so use it on the whole data."""

    lr: float = 1.0
    inner: int = 20
    """Iterations in one step."""
    history: int = 10

    def build(self, module: nn.Module) -> torch.optim.Optimizer:
        trained = [p for p in module.parameters() if p.requires_grad]
        return torch.optim.LBFGS(
            trained, self.lr, max_iter=self.inner, history_size=self.history, line_search_fn="strong_wolfe"
        )
