"""Ways to bring an attribute together with what others tell it, when their sizes differ.

    concatenation    f([x ‖ t_1 ‖ t_2 ‖ ..])                            side by side, before the update
    addition         f(x + M_1 t_1 + M_2 t_2 + ..)                      learned linear maps into the space of x
    modulation       f(γ(t) ⊙ x + β(t)),   t = [t_1 ‖ t_2 ‖ ..]         feature-wise

f is the network of the update. Blocks take one of them for their nodes, their edges and their context.

Systems: node-edge-message-passing, global-context-block
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from descend.nn.graph.film import FiLM


class Concatenation(nn.Module):
    """x (m, d) and what is told (m, ..) -> f of d + Σ of the widths"""

    def __init__(self, f: nn.Module):
        super().__init__()
        self.f = f

    def forward(self, x: Tensor, *told: Tensor) -> Tensor:
        return self.f(torch.cat([x, *told], dim=-1))


class Addition(nn.Module):
    """x (m, width) and what is told (m, ..), of these widths -> f of width"""

    def __init__(self, width: int, told: Sequence[int], f: nn.Module):
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(n, width, bias=False) for n in told)
        self.f = f

    def forward(self, x: Tensor, *told: Tensor) -> Tensor:
        return self.f(sum((linear(t) for linear, t in zip(self.maps, told, strict=True)), x))


class Modulation(nn.Module):
    """x (m, width) and what is told (m, ..), of these widths -> f of width"""

    def __init__(self, width: int, told: Sequence[int], f: nn.Module):
        super().__init__()
        self.film = FiLM(sum(told), width)
        self.f = f

    def forward(self, x: Tensor, *told: Tensor) -> Tensor:
        return self.f(self.film(x, torch.cat(told, dim=-1)))
