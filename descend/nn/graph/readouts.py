"""Readouts: one vector for a whole graph from those of its nodes, whatever their number and order.

    h_G = Σ_v h_v        h_G = Σ_v h_v / n        h_G = max_v h_v, feature by feature

In the library's pooling ρ_{V→U}. The same pooling between other attributes is in `descend.nn.graph.pooling`.

Systems: attribute-pooling-and-readout
"""

from __future__ import annotations

from torch import Tensor, nn

from descend.ops.graph.aggregate import max_groups, sum_pairs
from descend.ops.graph.structure import Links


class SumReadout(nn.Module):
    """Nodes (n, d) -> graphs (g, d). It tells a graph from its double, which mean and max do not."""

    def forward(self, x: Tensor, links: Links) -> Tensor:
        return sum_pairs(x, links.members)


class MeanReadout(nn.Module):
    """Nodes (n, d) -> graphs (g, d)"""

    def forward(self, x: Tensor, links: Links) -> Tensor:
        return sum_pairs(x, links.members) / links.sizes.clamp_min(1)[:, None].to(x.dtype)


class MaxReadout(nn.Module):
    """Nodes (n, d) -> graphs (g, d)"""

    def forward(self, x: Tensor, links: Links) -> Tensor:
        return max_groups(x, links.owner, links.graphs)


READOUTS: dict[str, type[nn.Module]] = {"sum": SumReadout, "mean": MeanReadout, "max": MaxReadout}
