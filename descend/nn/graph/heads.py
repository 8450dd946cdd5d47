"""Predictions from node vectors at three levels: one for each node, for each pair of nodes, or for each whole graph.

    node     ŷ_v = PREDICT(h_v)
    edge     ŷ_uv = PREDICT(ends(h_u, h_v))        [h_u ‖ h_v], or h_u ⊙ h_v, which does not ask for a direction
    graph    ŷ_G = PREDICT(readout({h_v}))

PREDICT is any network on vectors, trained jointly. Its parameters do not depend on the size of a graph.

Systems: graph-task-levels
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.ops.graph.structure import Links


class NodeHead(nn.Module):
    """Node vectors (n, d) -> (n, c)"""

    def __init__(self, predict: nn.Module):
        super().__init__()
        self.predict = predict

    def forward(self, x: Tensor, links: Links) -> Tensor:
        return self.predict(x)


class GraphHead(nn.Module):
    """Node vectors (n, d) -> (g, c)"""

    def __init__(self, readout: nn.Module, predict: nn.Module):
        super().__init__()
        self.readout, self.predict = readout, predict

    def forward(self, x: Tensor, links: Links) -> Tensor:
        return self.predict(self.readout(x, links))


class EdgeHead(nn.Module):
    """Node vectors (n, d) and pairs of nodes (m, 2) -> (m, c); without pairs, the edges of the graph."""

    def __init__(self, ends: nn.Module, predict: nn.Module):
        super().__init__()
        self.ends, self.predict = ends, predict

    def forward(self, x: Tensor, links: Links, pairs: Tensor | None = None) -> Tensor:
        u, v = (links.source, links.target) if pairs is None else pairs.unbind(1)
        return self.predict(self.ends(x.index_select(0, u), x.index_select(0, v)))


class JoinedEnds(nn.Module):
    """[h_u ‖ h_v] (m, 2d): the pair (u, v) is not the pair (v, u)."""

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        return torch.cat([u, v], dim=-1)


class MultipliedEnds(nn.Module):
    """h_u ⊙ h_v (m, d): the same both ways; summed up it is the dot product."""

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        return u * v


ENDS: dict[str, tuple[type[nn.Module], int]] = {"joined": (JoinedEnds, 2), "multiplied": (MultipliedEnds, 1)}
"""Name -> how the ends of a pair are brought together, and how many times the width comes out."""


def make_perceptron(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """W_2 relu(W_1 x + b_1) + b_2"""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
