"""Teacher forcing: what the decoder reads in training, and scheduled sampling, which mixes in its own words.

    target          je   suis  étudiant  EOS
    decoder input   BOS  je    suis      étudiant          the target moved right by one

    teacher forcing       position s reads the true y_{s-1}: all positions in one parallel pass under the causal mask
    scheduled sampling    position s reads y_{s-1} with probability p, else the model's own ŷ_{s-1}

For a transformer scheduled sampling takes two passes: the first, teacher-forced and without a gradient, gives ŷ; the
second reads the mixture. p falls from 1 to 0 during training; VOM names the idea only, the three forms are those of the
original paper:

    linear            p = max(floor, 1 − t / T)
    exponential       p = k^t                            k < 1
    inverse sigmoid   p = k / (k + exp(t / k))           k ≥ 1

Systems: teacher-forcing, scheduled-sampling
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from descend.ranges import Between, Count, Range, Share


def shift_right(y: Tensor, start: int) -> Tensor:
    """[start, y_1 .. y_{T−1}]: (b, t) -> (b, t)"""
    return torch.cat([torch.full_like(y[:, :1], start), y[:, :-1]], dim=1)


def mix_tokens(y: Tensor, own: Tensor, start: int, true: Tensor) -> Tensor:
    """The decoder's input (b, t): the token before, from y where `true` (b, t), else from the model's own."""
    return shift_right(y.where(true, own), start)


@dataclass(frozen=True)
class LinearDecay:
    """p = max(floor, 1 − t / T)"""

    steps: Count = 1000
    """T: when the floor would be 0."""
    floor: Share = 0.0

    def __call__(self, t: int) -> float:
        return max(self.floor, 1 - t / self.steps)


@dataclass(frozen=True)
class ExponentialDecay:
    """p = k^t"""

    k: Between = 0.999

    def __call__(self, t: int) -> float:
        return float(self.k**t)


@dataclass(frozen=True)
class InverseSigmoidDecay:
    """p = k / (k + exp(t / k)): near 1 until about t = k log k, then it falls."""

    k: Annotated[float, Range(float, least=1)] = 100.0

    def __call__(self, t: int) -> float:
        return self.k / (self.k + math.exp(min(t / self.k, 700.0)))


Forcing = LinearDecay | ExponentialDecay | InverseSigmoidDecay
