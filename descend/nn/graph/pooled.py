"""Predictions where the attributes lie elsewhere: pool first, then predict.

    nodes from edges only       ŷ_v = c( Σ_{k → v} e_k )
    edges from nodes only       ŷ_uv = c( h_u + h_v )
    graphs from nodes only      ŷ_G = c( Σ_v h_v )               any readout in the place of the sum

c is a classifier or any other differentiable model on vectors.

Systems: attribute-pooling-and-readout
"""

from __future__ import annotations

from torch import Tensor, nn

from descend.ops.graph.pooling import pool_edges_to_nodes, pool_nodes_to_edges
from descend.ops.graph.structure import Graph


class NodesFromEdges(nn.Module):
    """graph -> (n, c), of what its edges hold"""

    def __init__(self, predict: nn.Module):
        super().__init__()
        self.predict = predict

    def forward(self, graph: Graph) -> Tensor:
        return self.predict(pool_edges_to_nodes(graph.edges, graph.links))


class EdgesFromNodes(nn.Module):
    """graph -> (e, c), of what its nodes hold"""

    def __init__(self, predict: nn.Module):
        super().__init__()
        self.predict = predict

    def forward(self, graph: Graph) -> Tensor:
        return self.predict(pool_nodes_to_edges(graph.nodes, graph.links))


class GraphsFromNodes(nn.Module):
    """graph -> (g, c), of what its nodes hold"""

    def __init__(self, readout: nn.Module, predict: nn.Module):
        super().__init__()
        self.readout, self.predict = readout, predict

    def forward(self, graph: Graph) -> Tensor:
        return self.predict(self.readout(graph.nodes, graph.links))
