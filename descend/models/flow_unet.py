"""A U-Net as a velocity field: images by flow matching.

    dx/dt = v_θ(x, t),   x(0) ~ N(0, I),   x(1) an image in −1..1

The network is the diffusion U-Net (`unet_2d.py`); it is told 1000 t, so that its waves of time have the same periods.
Sampling solves the ODE forwards, by any method and number of steps.

Systems: flow-matching
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.contracts import Chance, Wish
from descend.models.unet_2d import UNet2D, UNet2DConfig
from descend.ops.ode.solver import Method, Solver
from descend.ranges import Count
from descend.sampling.velocity import OFFERS, follow_wish
from descend.weights.layout import Layout

SCALE = 1000  # what times 0..1 are multiplied with


@dataclass(frozen=True)
class FlowUNetConfig(UNet2DConfig):
    """The U-Net's sizes, and how it samples."""

    method: Method = "heun"
    steps: Count = 25


class FlowUNet(UNet2D):
    """images (b, c, h, w), times (b) in 0..1 -> velocities (b, c, h, w)"""

    Config = FlowUNetConfig
    offers = OFFERS

    def __init__(self, config: FlowUNetConfig):
        if config.out != config.channels or config.classes:
            raise ValueError("a velocity field has as many channels as its images, and no classes")
        super().__init__(config)

    def forward(self, x: Tensor, t: Tensor | float, y: Tensor | None = None) -> Tensor:
        return super().forward(x, SCALE * torch.as_tensor(t, dtype=x.dtype, device=x.device), y)

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """New images."""
        c = self.config
        if c.size is None:
            raise ValueError("this U-Net does not say the side of its images; set size")
        return follow_wish(self, chance.normal(c.channels, c.size, c.size), Solver(c.method, c.steps), wish)


SIZES: dict[str, FlowUNetConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = FlowUNetConfig(
    size=8, channels=1, out=1, widths=(8, 16), attention=(False, True), blocks=1, head_size=4, groups=4, steps=2
)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Two images at two times."""
    return torch.randn(2, 1, 8, 8, generator=torch.Generator().manual_seed(0)), torch.tensor([0.2, 0.9])


LAYOUT = Layout("FlowUNet")
