"""Nodes and edges that learn from each other within a layer, in one order or the other.

    nodes first    v' = φ_V(v, Σ_{k → v} e_k)         e' = φ_E(e, v'_source + v'_target)
    edges first    e' = φ_E(e, v_source + v_target)   v' = φ_V(v, Σ_{k → v} e'_k)

φ is a combination (`descend.nn.graph.combination`): concatenation, or a learned linear map and addition. The order is a
choice of design, to be kept; on the same weights the two give different numbers. Neighbours hear of each other through
the edges between them.

Systems: node-edge-message-passing
"""

from __future__ import annotations

from torch import nn

from descend.ops.graph.pooling import pool_edges_to_nodes, pool_nodes_to_edges
from descend.ops.graph.structure import Graph


class NodesFirst(nn.Module):
    """graph -> graph"""

    def __init__(self, nodes: nn.Module, edges: nn.Module):
        super().__init__()
        self.nodes, self.edges = nodes, edges

    def forward(self, graph: Graph) -> Graph:
        nodes = self.nodes(graph.nodes, pool_edges_to_nodes(graph.edges, graph.links))
        return graph.update(nodes, self.edges(graph.edges, pool_nodes_to_edges(nodes, graph.links)))


class EdgesFirst(nn.Module):
    """graph -> graph"""

    def __init__(self, nodes: nn.Module, edges: nn.Module):
        super().__init__()
        self.nodes, self.edges = nodes, edges

    def forward(self, graph: Graph) -> Graph:
        edges = self.edges(graph.edges, pool_nodes_to_edges(graph.nodes, graph.links))
        return graph.update(self.nodes(graph.nodes, pool_edges_to_nodes(edges, graph.links)), edges)
