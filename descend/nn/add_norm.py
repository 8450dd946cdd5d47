"""Residual Add & Norm: the two ways to put a sublayer, a residual connection and a norm together.

    post-norm   H' = LN(H + Sub(H))            the original Transformer, BERT
    pre-norm    H' = H + Sub(LN(H))            GPT-2, T5, LLaMA

With a sublayer that gives 0, pre-norm is the identity and post-norm is LN: a pre-norm stack has a path from the input
to the output that nothing touches, so its gradients do not shrink with depth. MF and VOM write no norm after a pre-norm
stack; the released models all have one, since the sum has never been normalised, and `Stack` takes it as its last part.

The sublayer is given at the call, as a function of H alone: what else it looks at (masks, a source, a cache) is its own
business, and decoding with a cache uses the same residual and norm as training.

Systems: add-and-norm-and-stack
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from torch import Tensor, nn

Sublayer = Callable[[Tensor], Tensor]


class PostNorm(nn.Module):
    """LN(x + dropout(Sub(x)))"""

    def __init__(self, norm: nn.Module, dropout: float = 0.0):
        super().__init__()
        self.norm, self.dropout = norm, nn.Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        return cast("Tensor", self.norm(x + self.dropout(sublayer(x))))


class PreNorm(nn.Module):
    """x + dropout(Sub(LN(x)))"""

    def __init__(self, norm: nn.Module, dropout: float = 0.0):
        super().__init__()
        self.norm, self.dropout = norm, nn.Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        return x + cast("Tensor", self.dropout(sublayer(self.norm(x))))


AddNorm = PostNorm | PreNorm


class Stack(nn.Module):
    """X⁽ˡ⁾ = Layer_l(X⁽ˡ⁻¹⁾), l = 1..L, each with its own parameters; then `last`: the norm of a pre-norm stack."""

    def __init__(self, layers: Iterable[nn.Module], last: nn.Module | None = None):
        super().__init__()
        self.layers, self.last = nn.ModuleList(layers), last or nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """`mask` as each layer takes it."""
        for layer in self.layers:
            x = layer(x, mask)
        return cast("Tensor", self.last(x))
