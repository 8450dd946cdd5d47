"""GraphSAGE: what the neighbours say is brought together, and put beside what the node says itself.

    h'_v = W [ AGG_{u ∈ N(v)} h_u ‖ h_v ]        = W_n AGG + W_o h_v, the same with the matrix in two parts

    NeighbourMean    AGG = Σ_{u ∈ N(v)} h_u / |N(v)|                                     as published, as PyG has it
    InclusiveMean    AGG = W_pool (h_v + Σ_{u ∈ N(v)} h_u) / (1 + |N(v)|)                 DLN: it contains h_v already
    PooledMax        AGG = max_{u ∈ N(v)} relu(W_pool h_u + b), feature by feature
    NeighbourLSTM    AGG = the last state of an LSTM that reads the neighbours one by one

The LSTM depends on the order in which it reads; so the order is drawn anew in training, from a number u in [0, 1)
for each edge, least first. Out of training, or with u all equal, it is the order of the edge list: only this
aggregator gives other numbers when edges are listed otherwise. The nonlinearity is the model's, and so is
`UnitLength`, h / ‖h‖.

Nothing belongs to a single node, so nodes and graphs that were never seen in training have vectors, too.

Systems: graphsage
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from descend.nn.graph.features import FeatureLinear
from descend.ops.graph.aggregate import max_neighbours, mean_neighbours
from descend.ops.graph.structure import Links


class SAGELayer(nn.Module):
    """Nodes (n, inputs) -> (n, outputs); `neighbours` is one of the modules below: W_n AGG."""

    def __init__(self, neighbours: nn.Module, own: nn.Module):
        super().__init__()
        self.neighbours, self.own = neighbours, own

    def forward(self, x: Tensor, links: Links, u: Tensor | None = None) -> Tensor:
        return self.neighbours(x, links, u) + self.own(x)


class NeighbourMean(nn.Module):
    """W_n times the mean, which is the mean of W_n h_u."""

    def __init__(self, inputs: int, outputs: int, dropout: float = 0.0):
        super().__init__()
        self.linear = FeatureLinear(inputs, outputs, dropout=dropout)

    def forward(self, x: Tensor, links: Links, u: Tensor | None = None) -> Tensor:
        return mean_neighbours(self.linear(x), links)


class InclusiveMean(nn.Module):
    """W_n times the mean with the node itself; as many units in between as come out."""

    def __init__(self, inputs: int, outputs: int, dropout: float = 0.0):
        super().__init__()
        self.pool = FeatureLinear(inputs, outputs, dropout=dropout)
        self.linear = FeatureLinear(outputs, outputs)

    def gather(self, x: Tensor, links: Links) -> Tensor:
        """AGG"""
        return mean_neighbours(self.pool(x), links.looped)

    def forward(self, x: Tensor, links: Links, u: Tensor | None = None) -> Tensor:
        return self.linear(self.gather(x, links))


class PooledMax(nn.Module):
    """W_n times the largest; as many units in between as come out."""

    def __init__(self, inputs: int, outputs: int, dropout: float = 0.0):
        super().__init__()
        self.pool = FeatureLinear(inputs, outputs, bias=True, dropout=dropout)
        self.linear = FeatureLinear(outputs, outputs)

    def gather(self, x: Tensor, links: Links) -> Tensor:
        """AGG"""
        return max_neighbours(self.pool(x).relu(), links)

    def forward(self, x: Tensor, links: Links, u: Tensor | None = None) -> Tensor:
        return self.linear(self.gather(x, links))


class NeighbourLSTM(nn.Module):
    """W_n times the last state, which is 0 for a node without neighbours; as many units in between as come out."""

    def __init__(self, inputs: int, outputs: int, dropout: float = 0.0):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.lstm = nn.LSTM(inputs, outputs)
        self.linear = FeatureLinear(outputs, outputs)

    def gather(self, x: Tensor, links: Links, u: Tensor | None = None) -> Tensor:
        """AGG"""
        y = x.new_zeros(links.n, self.lstm.hidden_size)
        if links.e == 0:
            return y
        u = torch.rand(links.e, device=x.device) if u is None and self.training else u
        edges, sizes, readers = line_up(links, u)
        read = PackedSequence(self.drop(x).index_select(0, links.source[edges]), sizes.cpu())
        last = self.lstm(read)[1][0][0]
        return y.to(last.dtype).index_copy(0, readers, last)

    def forward(self, x: Tensor, links: Links, u: Tensor | None = None) -> Tensor:
        return self.linear(self.gather(x, links, u))


def line_up(links: Links, u: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The edges in the order in which they are read: the first of every node, the second of every node that has one, ..

    Also how many are read at each step, and the nodes that read, those with the most neighbours first.
    """
    rows, order = links.incoming, links.incoming.order
    if u is not None:  # by u, and then by target without a change of order
        by_u = torch.sort(u, stable=True).indices
        order = by_u[torch.sort(links.target[by_u], stable=True).indices]
    place = torch.empty_like(order)
    place[order] = torch.arange(links.e, device=order.device)
    step = place - rows.starts[links.target]  # which neighbour of its target it is
    readers = torch.sort(links.degree, descending=True, stable=True).indices
    rank = torch.empty_like(readers)
    rank[readers] = torch.arange(links.n, device=order.device)
    sizes = torch.bincount(step)
    return torch.sort(step * links.n + rank[links.target]).indices, sizes, readers[: int(sizes[0])]


class UnitLength(nn.Module):
    """h / ‖h‖"""

    def forward(self, h: Tensor) -> Tensor:
        return F.normalize(h, dim=-1)
