"""Decoders of recurrent encoder-decoders: how the source enters the target, once, at every step, or by attention.

    fixed context   c = h_enc⁽ᵀ⁾, the encoder's last state
      `FromStart`       s_0 = c (an LSTM's cell too),  s_t = f(s_{t-1}, y_{t-1})                        MF
      `EveryStep`       s_0 = 0,  s_t = f(s_{t-1}, [y_{t-1}; c])                                       DLN, S940
    attention       α_{t,j} = softmax_j(score(s, h_j)),   c_t = Σ_j α_{t,j} h_j
      `Current`         s = s_t:      out_t = tanh(W [c_t; s_t])                                        MF, Luong
      `Previous`        s = s_{t-1}:  s_t = f(s_{t-1}, [y_{t-1}; c_t]),  out_t = tanh(W [c_t; s_t])     Bahdanau
    score           dot sᵀh     scaled sᵀh/√d     multiplicative sᵀ W h     additive vᵀ tanh(W s + U h)

MF writes only v and tanh of the additive score; the inside is that of the paper (Bahdanau 2014), as are all equations
of DLN and VOM, which give the idea alone. How c_t enters the output is not stated by MF: it joins s_t, as Luong has it.
The current-state form and the fixed ones run a whole target in one call of the kernel; the previous-state form cannot.

Systems: rnn-encoder-decoder, rnn-attention-decoder
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from descend.nn.recurrent.layers import Cell, Recurrent

Score = Literal["dot", "scaled", "multiplicative", "additive"]
Context = Literal["start", "every-step", "current", "previous"]


class Carried(NamedTuple):
    """A decoder in the middle of a target: its state (n, depth, b, d) and what it may look at."""

    state: Tensor
    c: Tensor
    """the encoder's last state (b, d)"""
    h: Tensor
    """all encoder states (b, s, d)"""
    keys: Tensor
    """what the score reads of them (b, s, d)"""
    real: Tensor
    """True where the source is not padding (b, s)"""

    def take(self, rows: Tensor) -> Carried:
        """These rows, in this order."""
        return Carried(self.state[:, :, rows], *(part[rows] for part in self[1:]))


class Dot(nn.Module):
    """sᵀ h"""

    def __init__(self, width: int):
        super().__init__()

    def keys(self, h: Tensor) -> Tensor:
        """What is read of h at every step, computed once."""
        return h

    def forward(self, s: Tensor, keys: Tensor) -> Tensor:
        """s (b, t, d), keys (b, s, d) -> (b, t, s)"""
        if s.shape[-1] != keys.shape[-1]:
            raise ValueError(f"a dot score needs equal widths, not {s.shape[-1]} and {keys.shape[-1]}; use additive")
        return s @ keys.mT


class Scaled(Dot):
    """sᵀ h / √d"""

    def forward(self, s: Tensor, keys: Tensor) -> Tensor:
        return super().forward(s, keys) / math.sqrt(s.shape[-1])


class Multiplicative(Dot):
    """sᵀ W h"""

    def __init__(self, width: int):
        super().__init__(width)
        self.w = nn.Linear(width, width, bias=False)

    def keys(self, h: Tensor) -> Tensor:
        return self.w(h)


class Additive(nn.Module):
    """vᵀ tanh(W s + U h)"""

    def __init__(self, width: int):
        super().__init__()
        self.w = nn.Linear(width, width, bias=False)
        self.u = nn.Linear(width, width, bias=False)
        self.v = nn.Linear(width, 1, bias=False)

    def keys(self, h: Tensor) -> Tensor:
        return self.u(h)

    def forward(self, s: Tensor, keys: Tensor) -> Tensor:
        return self.v((self.w(s)[:, :, None] + keys[:, None]).tanh())[..., 0]


SCORES: dict[str, type[Dot | Additive]] = {
    "dot": Dot,
    "scaled": Scaled,
    "multiplicative": Multiplicative,
    "additive": Additive,
}


class FromStart(nn.Module):
    """s_0 = c; one call runs a target y (b, t, e) from what is carried -> out (b, t, d), no weights, the new state."""

    def __init__(self, cell: Cell, embedded: int, width: int, depth: int, dropout: float):
        super().__init__()
        self.layers = Recurrent(cell, embedded, width, depth, dropout)

    def begin(self, h: Tensor, state: Tensor, real: Tensor) -> Carried:
        """Before the first word, from the encoder's states and its last state."""
        return Carried(state, state[0, -1], h, h, real)

    def forward(self, y: Tensor, carried: Carried) -> tuple[Tensor, Tensor | None, Tensor]:
        out, state = self.layers(y, carried.state)
        return out, None, state


class EveryStep(nn.Module):
    """s_0 = 0 and every step reads [y_{t-1}; c]."""

    def __init__(self, cell: Cell, embedded: int, width: int, depth: int, dropout: float):
        super().__init__()
        self.layers = Recurrent(cell, embedded + width, width, depth, dropout)

    def begin(self, h: Tensor, state: Tensor, real: Tensor) -> Carried:
        return Carried(torch.zeros_like(state), state[0, -1], h, h, real)

    def forward(self, y: Tensor, carried: Carried) -> tuple[Tensor, Tensor | None, Tensor]:
        c = carried.c[:, None].expand(-1, y.shape[1], -1)
        out, state = self.layers(torch.cat([y, c], dim=-1), carried.state)
        return out, None, state


class Attending(nn.Module):
    """What both attention forms share: the score, and out_t = tanh(W [c_t; s_t])."""

    def __init__(self, score: Score, width: int):
        super().__init__()
        if score not in SCORES:
            raise ValueError(f"score {score!r} is unknown; known: {', '.join(SCORES)}")
        self.score = SCORES[score](width)
        self.join = nn.Linear(2 * width, width)

    def begin(self, h: Tensor, state: Tensor, real: Tensor) -> Carried:
        return Carried(state, state[0, -1], h, self.score.keys(h), real)

    def look(self, s: Tensor, carried: Carried) -> tuple[Tensor, Tensor]:
        """c_t (b, t, d) and the weights α (b, t, s), for s (b, t, d)."""
        scores = self.score(s, carried.keys).masked_fill(~carried.real[:, None], -math.inf)
        weights = scores.softmax(dim=-1)
        return weights @ carried.h, weights

    def out(self, c: Tensor, s: Tensor) -> Tensor:
        """tanh(W [c_t; s_t])"""
        return self.join(torch.cat([c, s], dim=-1)).tanh()


class Current(Attending):
    """s_t looks: the target is run first, then attended from, all steps at once."""

    def __init__(self, cell: Cell, embedded: int, width: int, depth: int, dropout: float, score: Score):
        super().__init__(score, width)
        self.layers = Recurrent(cell, embedded, width, depth, dropout)

    def forward(self, y: Tensor, carried: Carried) -> tuple[Tensor, Tensor | None, Tensor]:
        s, state = self.layers(y, carried.state)
        c, weights = self.look(s, carried)
        return self.out(c, s), weights, state


class Previous(Attending):
    """s_{t-1} looks: what it found is part of the next input, so the steps come one after another."""

    def __init__(self, cell: Cell, embedded: int, width: int, depth: int, dropout: float, score: Score):
        super().__init__(score, width)
        self.layers = Recurrent(cell, embedded + width, width, depth, dropout)

    def forward(self, y: Tensor, carried: Carried) -> tuple[Tensor, Tensor | None, Tensor]:
        state, found = carried.state, []
        for y_t in y.split(1, dim=1):
            c, weights = self.look(state[0, -1][:, None], carried)
            s, state = self.layers(torch.cat([y_t, c], dim=-1), state)
            found.append((s, c, weights))
        s, c, weights = (torch.cat(part, dim=1) for part in zip(*found, strict=True))
        return self.out(c, s), weights, state
