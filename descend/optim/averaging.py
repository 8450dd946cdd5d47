"""Iterate averaging around any optimizer.

    θ̄ = (1/T) Σ_{t=1}^{T} θ_t

The gradient is taken at the iterate θ_t, the answer is the average θ̄, whose variance around the optimum is lower.
Between steps the parameters hold θ̄, so that evaluation, checkpoints and the published weights are those of the
average; `step` puts θ_t back, lets the inner optimizer move it, and needs a closure for that. The two live in the
inner optimizer's state.

torch.optim.swa_utils.AveragedModel keeps the same mean in a copy of the model, beside the iterates.

Systems: iterate-averaging
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from descend.optim.elementwise import Closure, evaluate


class IterateAveraging(Optimizer):
    """The average of the inner optimizer's iterates, from the step after `start` on."""

    def __init__(self, inner: Optimizer, start: int = 0):
        super().__init__(inner.param_groups, inner.defaults)
        self.inner, self.start = inner, start
        self.share()

    def share(self) -> None:
        """Groups and state are the inner optimizer's own."""
        self.param_groups, self.state = self.inner.param_groups, self.inner.state

    @torch.no_grad()
    def step(self, closure: Closure | None = None) -> Any:
        params = [p for group in self.param_groups for p in group["params"]]
        mean = [p.clone() for p in params]
        for p in params:
            p.copy_(self.state.get(p, {}).get("iterate", p))
        try:
            loss = self.inner.step(lambda: evaluate(closure))
        except BaseException:
            for p, value in zip(params, mean, strict=True):
                p.copy_(value)
            raise
        for p, value in zip(params, mean, strict=True):
            self.fold(p, value)
        return loss

    def fold(self, p: Tensor, mean: Tensor) -> None:
        """Keep the iterate, and put the mean of the t − start iterates so far in its place."""
        if p.grad is None:
            p.copy_(mean)
            return
        state = self.state[p]
        t = state["averaged"] = state.get("averaged", 0) + 1
        state["iterate"] = p.clone()
        if t - self.start > 1:
            p.copy_(mean.lerp_(p, 1 / (t - self.start)))

    def state_dict(self) -> dict[str, Any]:
        return self.inner.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.inner.load_state_dict(state_dict)
        self.share()
