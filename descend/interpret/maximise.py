"""Activation maximisation: the image that a unit likes best, found by climbing.

    x* = argmax_x  a_u(x) − λ₂ ‖x‖² − λ_tv TV(x)        TV(x) = Σ (x_{i+1,j} − x_ij)² + (x_{i,j+1} − x_ij)²

a_u is a logit, or the mean of map u of a layer. Without the penalties the image is noise of high frequency that no
camera would see. Shifting the image by a few pixels before each step (jitter) acts against the same noise. For a linear
unit w·x the maximum with λ₂ alone is w / (2 λ₂).

Systems: filter-visualization
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.interpret.layers import as_maps, evaluation_mode, watch_layer


def total_variation(x: Tensor) -> Tensor:
    """TV of each image (b, c, h, w) -> (b)"""
    return x.diff(dim=2).square().sum(dim=(1, 2, 3)) + x.diff(dim=3).square().sum(dim=(1, 2, 3))


def mean_activation(model: nn.Module, name: str, x: Tensor, units: Tensor) -> Tensor:
    """a_u (b): unit u[i] for image i, of the output (no name) or of a layer's maps."""
    if not name:
        return model(x).gather(1, units[:, None])[:, 0]
    with watch_layer(model, name) as seen:
        model(x)
    a = seen[-1] if seen[-1].dim() == 2 else as_maps(seen[-1], *x.shape[-2:]).mean(dim=(2, 3))
    return a.gather(1, units[:, None])[:, 0]


def maximise(
    model: nn.Module,
    units: list[int],
    start: Tensor,
    name: str = "",
    steps: int = 200,
    lr: float = 0.1,
    decay: float = 1e-3,
    smooth: float = 1e-3,
    jitter: int = 0,
) -> Tensor:
    """One image for each unit, climbed with Adam from `start` (c, h, w); decay is λ₂, smooth is λ_tv."""
    if not units or steps < 1:
        raise Mistake("activation maximisation needs a unit and a step")
    u = torch.tensor(units, device=start.device)
    x = start.detach().repeat(len(units), 1, 1, 1).requires_grad_()
    rule, random = torch.optim.Adam([x], lr), torch.Generator().manual_seed(0)
    with evaluation_mode(model), torch.enable_grad():
        for step in range(steps):
            for group in rule.param_groups:
                group["lr"] = lr * (1 - step / steps)
            shift = torch.randint(-jitter, jitter + 1, (2,), generator=random).tolist()
            seen = x.roll(shift, dims=(2, 3)) if jitter else x
            gain = mean_activation(model, name, seen, u) - decay * x.square().sum(dim=(1, 2, 3))
            (gain - smooth * total_variation(x)).sum().neg().backward(inputs=[x])
            rule.step()
            rule.zero_grad()
    return x.detach()
