"""Mixed precision: compute in half precision, keep the weights in float32, scale the loss so that gradients survive.

    L' = s L                   in float32: a loss of 2 times s = 2¹⁵ is already beyond float16
    g' = ∂L'/∂θ = s g          half precision, s times as far from the underflow
    g  = g' / s                float32
    g finite:    θ ← θ − η g   float32 master weights; the module gets θ rounded.   After n such steps in a row s ← 2 s
    overflow:    skip the step,  s ← s / 2

The rule for s is that of torch's GradScaler; growth = backoff = 1 keeps s fixed. Where the weights are float32 and
torch.autocast does the rounding, `LossScaler` alone is enough; `MixedPrecision` keeps the master copy itself, so that
an update too small for the half-precision weight still adds up. VOM leaves the scaling out; float16 needs it, bfloat16
does not (range of float32).

Errata: MF 11.3.2 says that gradients of 1e-3 to 1e-5 underflow to 0 in float16. They do not: 1e-3 and 1e-4 are normal
numbers and 1e-5 a coarser subnormal; 0 begins below 2⁻²⁵ ≈ 3e-8, and s = 2¹⁵ moves that to 9.1e-13. MF 11.3.1 scales
a loss that is in float16 by 2¹⁵, which overflows from 2.0 on: here it is float32 before it is scaled.

Systems: mixed-precision
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

LARGEST = torch.finfo(torch.float32).max


class LossScaler:
    """The scale s and its rule. `backward(loss)`, then `step(optimizer)`; or `unscale`, clip, step, `update`."""

    def __init__(self, scale: float = 2.0**15, growth: float = 2.0, backoff: float = 0.5, interval: int = 2000):
        self.scale, self.growth, self.backoff, self.interval = scale, growth, backoff, interval
        self.good = 0  # steps since the scale last changed

    def backward(self, loss: Tensor) -> None:
        """The gradients of s L; the product is made in float32."""
        (loss.float() * self.scale).backward()

    @torch.no_grad()
    def unscale(self, parameters: Sequence[Tensor]) -> bool:
        """g ← g' / s in place, and whether all of it is finite."""
        grads = [p.grad for p in parameters if p.grad is not None]
        if not grads:
            raise ValueError("no parameter has a gradient: call backward(loss) first")
        torch._foreach_mul_(grads, 1 / self.scale)
        return finite(grads)

    def update(self, whole: bool) -> None:
        """Halve the scale after an overflow; double it after this many good steps in a row."""
        if not whole:
            self.scale, self.good = self.scale * self.backoff, 0
            return
        self.good += 1
        if self.good == self.interval:
            self.good = 0
            if self.scale * self.growth <= LARGEST:
                self.scale *= self.growth

    def step(self, optimizer: torch.optim.Optimizer) -> bool:
        """Unscale, step unless there was an overflow, set the next scale; whether the step was taken."""
        whole = self.unscale([p for group in optimizer.param_groups for p in group["params"]])
        if whole:
            optimizer.step()
        self.update(whole)
        return whole

    def state_dict(self) -> dict[str, Any]:
        return {"scale": self.scale, "good": self.good}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.scale, self.good = state["scale"], state["good"]


class MixedPrecision:
    """A module in half precision and its float32 master weights, on which the optimizer is built.

    mixed = MixedPrecision(model, LossScaler()); optimizer = SGD(mixed.master); then mixed.step(loss, optimizer).
    """

    def __init__(self, module: nn.Module, scaler: LossScaler, dtype: torch.dtype = torch.float16):
        self.scaler = scaler
        full = [p.detach().float().clone() for p in module.parameters() if p.requires_grad]
        self.master: list[Tensor] = [nn.Parameter(p) for p in full]
        self.half: list[Tensor] = [p for p in module.to(dtype).parameters() if p.requires_grad]

    def step(self, loss: Tensor, optimizer: torch.optim.Optimizer) -> bool:
        """Backward, the master's step, the rounded weights back to the module; False when an overflow was skipped."""
        for p in self.half:
            p.grad = None
        self.scaler.backward(loss)
        for mine, p in zip(self.master, self.half, strict=True):
            mine.grad = None if p.grad is None else p.grad.float()
        taken = self.scaler.step(optimizer)
        with torch.no_grad():
            torch._foreach_copy_(self.half, self.master)
        return taken


def finite(tensors: Sequence[Tensor]) -> bool:
    """Whether no entry is infinite or NaN."""
    return all(bool(x.isfinite().all()) for x in tensors)


def through_half(g: Tensor, scale: float = 1.0, dtype: torch.dtype = torch.float16) -> Tensor:
    """What is left of a gradient that was scaled, kept in half precision, and unscaled."""
    return (g * scale).to(dtype).to(g.dtype) / scale


def lost_below(scale: float = 1.0, dtype: torch.dtype = torch.float16) -> float:
    """Gradients up to this size become 0: half of the smallest subnormal number, over s."""
    return smallest_subnormal(dtype) / 2 / scale


def smallest_subnormal(dtype: torch.dtype = torch.float16) -> float:
    """The smallest number above 0 that the format has."""
    found = torch.finfo(dtype)
    return found.smallest_normal * found.eps


def largest_loss(scale: float, dtype: torch.dtype = torch.float16) -> float:
    """The largest loss whose scaled value would still fit, if it were kept in half precision."""
    return torch.finfo(dtype).max / scale
