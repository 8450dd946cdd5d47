"""GELU in its tanh form, as GPT-2 was released with.

    gelu(x) = x (1 + tanh u) / 2 = x σ(2u)            u = √(2/π) (x + 0.044715 x³)
    gelu'(x) = σ(2u) + 2 u' x σ(2u) (1 − σ(2u))

The two forms are one, since (1 + tanh u)/2 = σ(2u). On a CPU it is one pass of compiled code in each direction
(`descend.native`), where torch takes three times as long; elsewhere it is torch's own. The exact form is torch.nn.GELU.
CLIP was released with a rougher one, x σ(1.702 x).

Systems: gelu
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from descend.native import training


class GELUTanh(nn.Module):
    """x (1 + tanh(√(2/π)(x + 0.044715 x³))) / 2."""

    def forward(self, x: Tensor) -> Tensor:
        if training.usable(x):
            return training.gelu_tanh(x)
        return F.gelu(x, approximate="tanh")


class QuickGELU(nn.Module):
    """x σ(1.702 x)"""

    def forward(self, x: Tensor) -> Tensor:
        return x * (1.702 * x).sigmoid()
