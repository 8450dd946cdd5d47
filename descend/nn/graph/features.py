"""The first linear map of a graph network, for nodes whose features are mostly zeros, such as the words of a paper.

    y = W drop(x)            Σ over the features that are not 0, drop on those alone: a dropped 0 is a 0
    ∂W = Σ_v ȳ_v drop(x_v)ᵀ  over the same

Whether x is mostly zeros is found out once for a tensor and kept with it. What needs a gradient itself, is narrow or is
full is multiplied as it is.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.weak import WeakTensorKeyDictionary

from descend.ops.graph.aggregate import sum_pairs
from descend.ops.graph.structure import Incidence
from descend.ops.hashed_dropout import drop_hashed

LEAST = 64  # features below which all of them are multiplied
DENSITY = 0.1  # share of features that are not 0 above which all of them are multiplied


class Entries:
    """The entries of a matrix (n, d) that are not 0: values (m), each leading from its column to its row."""

    def __init__(self, x: Tensor):
        rows, columns = x.nonzero(as_tuple=True)
        self.values, self.places = x[rows, columns], Incidence(columns, rows, x.shape[1], len(x))


kept: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
"""Tensor -> its version, and its entries if it is mostly zeros; gone when the tensor is."""


def find_entries(x: Tensor) -> Entries | None:
    """The entries of x (n, d), if it is mostly zeros and its zeros are no variables."""
    if x.requires_grad or x.dim() != 2 or x.shape[1] < LEAST or x.is_inference() or torch.compiler.is_compiling():
        return None
    if x not in kept or kept[x][0] != x._version:
        sample = x[:: max(1, len(x) // 64)]
        sparse = len(x) > 0 and int(sample.count_nonzero()) <= DENSITY * sample.numel()
        kept[x] = (x._version, Entries(x) if sparse else None)
    found: Entries | None = kept[x][1]
    return found


class FeatureLinear(nn.Linear):
    """W drop(x) + b of nodes (n, inputs) -> (n, outputs); Glorot's uniform start."""

    def __init__(self, inputs: int, outputs: int, bias: bool = False, dropout: float = 0.0):
        super().__init__(inputs, outputs, bias)
        self.dropout = dropout
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        entries = find_entries(x)
        if entries is None:
            return F.linear(drop_hashed(x, self.dropout, self.training), self.weight, self.bias)
        values = drop_hashed(entries.values, self.dropout, self.training).to(self.weight.dtype)
        y = sum_pairs(self.weight.t(), entries.places, values)
        return y if self.bias is None else y + self.bias
