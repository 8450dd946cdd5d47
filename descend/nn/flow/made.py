"""Masked autoregressive network (MADE): one network for all conditionals, by weights that are masked.

    output n depends on x_1 .. x_{n−1} only, in a chosen order

    each input has a degree m (its place 1..D in the order), each hidden unit one of 1..D−1
    hidden  W_kj may be ≠ 0 where m(k) ≥ m(j)        output  W_nk where m(n) > m(k)

A path from input j to output n passes degrees that never fall and rise strictly at the end, so m(n) > m(j). The books
say that binary masks do it and leave their construction open; this is MADE's, with hidden degrees in turn instead of
drawn. Inputs of one degree are a group: with the degrees 1, 1, 2, 2 the network is that of a coupling layer.

Systems: masked-autoregressive-network
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from descend.nn.flow.coupling import shrink_last


class MaskedLinear(nn.Linear):
    """(W ∘ mask) x + b"""

    mask: Tensor

    def __init__(self, mask: Tensor):
        super().__init__(mask.shape[1], mask.shape[0])
        self.register_buffer("mask", mask.to(self.weight.dtype), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight * self.mask, self.bias)


def make_masks(degrees: Sequence[int], width: int, depth: int, numbers: int) -> list[Tensor]:
    """Masks (out, in) of a network with `depth` hidden layers and `numbers` outputs for each input of a degree."""
    given = torch.tensor(list(degrees), device="cpu")
    lowest, groups = int(given.min()), int(given.max() - given.min())
    hidden = lowest + torch.arange(width, device="cpu") % max(groups, 1)
    layers = [given, *[hidden] * depth]
    masks = [after[:, None] >= before for before, after in pairwise(layers)]
    out = given.repeat_interleave(numbers)
    return [*masks, out[:, None] > layers[-1]]


class MADE(nn.Module):
    """x (b, D) -> numbers (b, D, numbers), those of variable n from the variables before it alone

    Args:
        degrees: m of each variable: 1..D in the order that they depend on each other; equal ones are a group.
        numbers: outputs for each variable.
        width: units of a hidden layer.
        depth: hidden layers.
        context: numbers (b, context) that every output may depend on; 0 for none.
    """

    def __init__(self, degrees: Sequence[int], numbers: int, width: int, depth: int, context: int = 0):
        super().__init__()
        self.degrees, self.numbers = tuple(degrees), numbers
        self.layers = nn.ModuleList(MaskedLinear(m) for m in make_masks(degrees, width, depth, numbers))
        self.context = nn.Linear(context, width, bias=False) if context else None
        shrink_last(self.layers)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        h = self.layers[0](x)
        if self.context is not None:
            h = h + self.context(context)
        for layer in self.layers[1:]:
            h = layer(h.relu_())
        return h.view(len(x), len(self.degrees), self.numbers)

    @property
    def passes(self) -> int:
        """Passes that an inversion needs: one for each group."""
        return len(set(self.degrees))
