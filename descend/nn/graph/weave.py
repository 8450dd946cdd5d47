"""Weave layer: four paths between nodes and edges, all of them from the old values at once.

    v' = W_VV v + W_EV Σ_{k → v} e_k + b_V            node to node, edge to node
    e' = W_EE e + W_VE (v_source + v_target) + b_E    edge to edge, node to edge

Without the cross paths, W_EV = W_VE = 0, it is the graph-independent linear layer.

Systems: weave-layer
"""

from __future__ import annotations

from torch import nn

from descend.ops.graph.pooling import pool_edges_to_nodes, pool_nodes_to_edges
from descend.ops.graph.structure import Graph


class Weave(nn.Module):
    """graph -> graph; nodes of width `nodes` come out with `new_nodes`, edges likewise"""

    def __init__(self, nodes: int, edges: int, new_nodes: int, new_edges: int):
        super().__init__()
        self.node_to_node, self.edge_to_edge = nn.Linear(nodes, new_nodes), nn.Linear(edges, new_edges)
        self.edge_to_node = nn.Linear(edges, new_nodes, bias=False)
        self.node_to_edge = nn.Linear(nodes, new_edges, bias=False)

    def forward(self, graph: Graph) -> Graph:
        v, e, links = graph.nodes, graph.edges, graph.links
        nodes = self.node_to_node(v) + self.edge_to_node(pool_edges_to_nodes(e, links))
        edges = self.edge_to_edge(e) + self.node_to_edge(pool_nodes_to_edges(v, links))
        return graph.update(nodes, edges)
