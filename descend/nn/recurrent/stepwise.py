"""The books' GRU as a layer: stacked, in both directions, with a state and lengths, unrolled step by step.

    r, z = σ(W_r u + b_r), σ(W_z u + b_z)                 u = [h_{t-1}; x_t]
    h̃ = tanh(W_h [r ⊙ h_{t-1}; x_t] + b_h)                the reset gate BEFORE the matrix: torch has no kernel for it
    h_t = z ⊙ h_{t-1} + (1 − z) ⊙ h̃                       `KeepGRU`: z keeps the old state                       DLN
    h_t = (1 − z) ⊙ h_{t-1} + z ⊙ h̃,  b = 0               `UpdateGRU`: z lets the new one in, no biases          S940

Parameters: 3 h (h + d) + 3 h, without biases 3 h (h + d): three quarters of an LSTM's. A state stays as it is where a
sequence has ended, so padding is never read, in either direction.

Systems: gru
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.ops.recurrent import Gates, gru, gru_of_new
from descend.ops.sequences import real


class Stepwise(nn.Module):
    """`num_layers` layers of one cell in 1 or 2 directions, named as torch names them: weight_l0, weight_l0_reverse.

    x (b, t, inputs) -> h (b, t, directions · width), 0 at padding, and the last states (layers · directions, b, width).
    """

    biased = True

    def __init__(self, inputs: int, width: int, depth: int = 1, dropout: float = 0.0, directions: int = 1):
        super().__init__()
        self.width, self.num_layers, self.drop = width, depth, nn.Dropout(dropout)
        self.ways = ("", "_reverse")[:directions]
        for layer in range(depth):
            read = directions * width if layer else inputs
            for way in self.ways:
                weight = torch.empty(3 * width, width + read).uniform_(-(width**-0.5), width**-0.5)
                self.register_parameter(f"weight_l{layer}{way}", nn.Parameter(weight))
                if self.biased:
                    self.register_parameter(f"bias_l{layer}{way}", nn.Parameter(torch.zeros(3 * width)))

    def step(self, x: Tensor, h: Tensor, w: Gates) -> Tensor:
        """h_t from x_t (b, d) and h_{t-1} (b, h)."""
        raise NotImplementedError

    def gates(self, name: str) -> Gates:
        """The weights of a layer and direction: gates("l0_reverse")."""
        weight = self.get_parameter(f"weight_{name}")
        return Gates(weight, self.get_parameter(f"bias_{name}") if self.biased else weight.new_zeros(len(weight)))

    def forward(self, x: Tensor, state: Tensor | None = None, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """`state` (layers · directions, b, width) is 0 unless given; without lengths every step is real."""
        b, t = x.shape[:2]
        state = x.new_zeros(self.num_layers * len(self.ways), b, self.width) if state is None else state
        is_real = x.new_ones(b, t, dtype=torch.bool) if lengths is None else real(lengths.to(x.device), t)
        last: list[Tensor] = []
        for layer in range(self.num_layers):
            found = []
            for way in self.ways:
                h, end = self.unroll(x, state[len(last)], self.gates(f"l{layer}{way}"), is_real, bool(way))
                found.append(h)
                last.append(end)
            x = torch.cat(found, dim=-1)
            x = self.drop(x) if layer < self.num_layers - 1 else x
        return x, torch.stack(last)

    def unroll(self, x: Tensor, h: Tensor, w: Gates, is_real: Tensor, backwards: bool) -> tuple[Tensor, Tensor]:
        """The states of one layer in one direction (b, t, width) and the last of them (b, width)."""
        states, times = [], range(x.shape[1])
        for t in reversed(times) if backwards else times:
            here = is_real[:, t, None]
            h = torch.where(here, self.step(x[:, t], h, w), h)
            states.append(h * here)
        return torch.stack(states[::-1] if backwards else states, dim=1), h


class KeepGRU(Stepwise):
    """DLN: h_t = z ⊙ h_{t-1} + (1 − z) ⊙ h̃"""

    def step(self, x: Tensor, h: Tensor, w: Gates) -> Tensor:
        return gru(x, h, w)


class UpdateGRU(Stepwise):
    """S940: h_t = (1 − z) ⊙ h_{t-1} + z ⊙ h̃, without biases"""

    biased = False

    def step(self, x: Tensor, h: Tensor, w: Gates) -> Tensor:
        return gru_of_new(x, h, w)
