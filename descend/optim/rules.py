"""Optimizer rules as frozen values: what a recipe holds, and `build`, which makes the optimizer. Here those of torch.

    SGD             v ← μ v + g,  θ ← θ − η v                         (MF's form; μ = 0 is gradient descent)
    ShiftedNesterov v ← μ v + g,  θ ← θ − η (g + μ v)                 (θ is the look-ahead point of `momentum.Nesterov`)
    RMSprop         θ ← θ − η g / (√E[g²] + ε)                        (ε outside the root)
    Adagrad         θ ← θ − η g / (√Σ g² + ε)
    Adadelta        θ ← θ − √(E[Δ²] + ε) / √(E[g²] + ε) · g           (ε inside, as printed; no learning rate: η = 1)
    Rprop           Δ ← 1.2 Δ or 0.5 Δ,  θ ← θ − sign(g) Δ            (no move where the sign has changed)
    Adam            θ ← θ − η m̂ / (√v̂ + ε)                            (ε outside the root; MF has it inside)
    AdamL2          Adam with g + λ θ for g: weights with large gradients decay less
    AdamW           θ ← θ − η (m̂ / (√v̂ + ε) + λ θ)                    (the second form of DLN: the decay is η λ)
    UnscaledAdamW   θ ← θ − η_t (α m̂ / (√v̂ + ε) + λ θ)                (the first form: the decay is η_t λ)
    L-BFGS          θ ← θ − η H g, H from the last differences of θ and g, η by the strong Wolfe conditions

Weight decay acts on matrices only, never on biases and gains. The optimizers that torch lacks are in `book_rules.py`.

Systems: adamw, adadelta, lbfgs
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from descend.errors import Mistake
from descend.optim.shards import is_shard
from descend.ranges import Depth, Fraction, NonNegative, Positive, Rate, Share


def list_trained(module: nn.Module) -> list[nn.Parameter]:
    """The parameters that take gradients."""
    return [p for p in module.parameters() if p.requires_grad]


def group_by_decay(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Parameter groups: matrices with decay, vectors without."""
    matrices, vectors = (
        [p for p in list_trained(module) if p.dim() > 1],
        [p for p in list_trained(module) if p.dim() < 2],
    )
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def list_whole(module: nn.Module, rule: object) -> list[nn.Parameter]:
    """The parameters that take gradients, for a rule that cannot work on shards of them."""
    if any(is_shard(p) for p in module.parameters()):
        raise Mistake(f"{type(rule).__name__} does not work on sharded parameters; train with --parallel ddp")
    return list_trained(module)


def _can_fuse(parameters: Iterable[torch.Tensor]) -> bool:
    """One kernel for the whole update, where torch has it (not for sharded tensors)."""
    return all(p.is_floating_point() and not is_shard(p) for p in parameters)


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent with momentum."""

    lr: Rate = 0.1
    momentum: Fraction = 0.9
    weight_decay: NonNegative = 0.0

    def build(self, module: nn.Module) -> Optimizer:
        groups = group_by_decay(module, self.weight_decay)
        return torch.optim.SGD(groups, self.lr, self.momentum, fused=_can_fuse(module.parameters()))


@dataclass(frozen=True)
class ShiftedNesterov:
    """Nesterov momentum without a second point: the parameters are the look-ahead point."""

    lr: Rate = 0.1
    momentum: Fraction = 0.9
    weight_decay: NonNegative = 0.0

    def build(self, module: nn.Module) -> Optimizer:
        groups, fused = group_by_decay(module, self.weight_decay), _can_fuse(module.parameters())
        return torch.optim.SGD(groups, self.lr, self.momentum, nesterov=True, fused=fused)


@dataclass(frozen=True)
class RMSprop:
    """RMSProp with ε outside the root."""

    lr: Rate = 0.01
    gamma: Share = 0.9
    eps: Share = 1e-8
    weight_decay: NonNegative = 0.0

    def build(self, module: nn.Module) -> Optimizer:
        return torch.optim.RMSprop(group_by_decay(module, self.weight_decay), self.lr, self.gamma, self.eps)


@dataclass(frozen=True)
class Adagrad:
    """Adagrad with ε outside the root."""

    lr: Rate = 0.01
    eps: Share = 1e-10
    weight_decay: NonNegative = 0.0

    def build(self, module: nn.Module) -> Optimizer:
        return torch.optim.Adagrad(group_by_decay(module, self.weight_decay), self.lr, eps=self.eps)


@dataclass(frozen=True)
class Adadelta:
    """Adadelta; the text prints neither γ nor ε."""

    lr: Rate = 1.0
    gamma: Share = 0.95
    eps: Share = 1e-6
    weight_decay: NonNegative = 0.0

    def build(self, module: nn.Module) -> Optimizer:
        return torch.optim.Adadelta(group_by_decay(module, self.weight_decay), self.lr, self.gamma, self.eps)


@dataclass(frozen=True)
class Rprop:
    """Rprop of the paper, for full batches."""

    lr: Rate = 0.01
    """The first step size."""
    etas: tuple[Positive, Positive] = (0.5, 1.2)
    steps: tuple[Positive, Positive] = (1e-6, 50.0)

    def build(self, module: nn.Module) -> Optimizer:
        return torch.optim.Rprop(list_whole(module, self), self.lr, self.etas, self.steps)


@dataclass(frozen=True)
class Adam:
    """Adam, without decay."""

    lr: Rate = 1e-3
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: Share = 1e-8

    def build(self, module: nn.Module) -> Optimizer:
        params = list_trained(module)
        return torch.optim.Adam(params, self.lr, self.betas, self.eps, fused=_can_fuse(params))


@dataclass(frozen=True)
class AdamL2:
    """Adam with the decay in the gradient."""

    lr: Rate = 1e-3
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: Share = 1e-8
    weight_decay: NonNegative = 0.01

    def build(self, module: nn.Module) -> Optimizer:
        groups = group_by_decay(module, self.weight_decay)
        return torch.optim.Adam(groups, self.lr, self.betas, self.eps, fused=_can_fuse(module.parameters()))


@dataclass(frozen=True)
class AdamW:
    """Adam with decoupled weight decay."""

    lr: Rate = 1e-3
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: Share = 1e-8
    weight_decay: NonNegative = 0.01

    def build(self, module: nn.Module) -> Optimizer:
        groups = group_by_decay(module, self.weight_decay)
        return torch.optim.AdamW(groups, self.lr, self.betas, self.eps, fused=_can_fuse(module.parameters()))


@dataclass(frozen=True)
class UnscaledAdamW:
    """AdamW whose decay is λ, not η λ; a schedule scales both. It is AdamW with λ / α."""

    lr: Rate = 1e-3
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: Share = 1e-8
    weight_decay: NonNegative = 1e-5

    def build(self, module: nn.Module) -> Optimizer:
        return AdamW(self.lr, self.betas, self.eps, self.weight_decay / self.lr).build(module)


@dataclass(frozen=True)
class LBFGS:
    """Limited-memory BFGS; each step evaluates the loss several times, so use it on the whole data.

    Its line search decides by comparing losses. In float32 the last digit, and with it the number of threads, processes
    and micro-batches, can decide otherwise and lead along another path, as good as the first.
    """

    lr: Rate = 1.0
    inner: Depth = 20
    """Iterations in one step."""
    history: Depth = 10

    def build(self, module: nn.Module) -> Optimizer:
        return torch.optim.LBFGS(
            list_whole(module, self),
            self.lr,
            max_iter=self.inner,
            history_size=self.history,
            line_search_fn="strong_wolfe",
        )
