"""Any rule, with the zeros of matrices kept: fine-tuning of a pruned network.

    θ ← step(θ),   then θ ← θ ⊙ mask          mask: 0 where a matrix was exactly 0 when the training began

Momentum, moments and weight decay of the inner rule may move a pruned weight within the step; after it, it is 0 again.
The masks are state of the optimizer, so that a resume has those of the beginning.

Systems: magnitude-pruning
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim import LBFGS, Optimizer


@dataclass(frozen=True)
class KeepZeros:
    """Another rule; what is 0 in a matrix stays 0."""

    rule: Any

    def build(self, module: nn.Module) -> Optimizer:
        optimizer: Optimizer = self.rule.build(module)
        if not isinstance(optimizer, Optimizer) or isinstance(optimizer, LBFGS):
            raise ValueError(f"{type(self.rule).__name__} walks along lines, where no zero stays; use AdamW or SGD")
        masks = {p: (p.detach() != 0).to(p.dtype) for p in module.parameters() if p.dim() > 1 and bool((p == 0).any())}

        @torch.no_grad()
        def keep(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
            for p, mask in masks.items():
                p.mul_(optimizer.state[p].setdefault("mask", mask))

        optimizer.register_step_post_hook(keep)
        return optimizer
