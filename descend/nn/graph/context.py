"""Global context: one vector for the graph that every node and every edge is linked with, and so any two nodes.

    e' = φ_E(e, v_source + v_target, u)
    v' = φ_V(v, Σ_{k → v} e'_k, Σ_{w ∈ N(v)} v_w, u)
    u' = φ_U(u, Σ_v v', Σ_k e'_k)

φ is a combination (`descend.nn.graph.combination`): concatenation, linear maps and addition, or feature-wise
modulation. After two layers any node hears of any other; without a context it hears of nodes within two hops.

For small graphs there is another way: virtual edges, by which every node of a graph is the neighbour of every other.

Systems: global-context-block
"""

from __future__ import annotations

from torch import Tensor, nn

from descend.ops.graph.pooling import (
    pool_edges_to_context,
    pool_edges_to_nodes,
    pool_neighbours,
    pool_nodes_to_context,
    pool_nodes_to_edges,
    spread_to_edges,
    spread_to_nodes,
)
from descend.ops.graph.structure import Graph, Links


class GlobalContextBlock(nn.Module):
    """graph -> graph: edges, then nodes, then context, each conditioned on the others"""

    def __init__(self, edges: nn.Module, nodes: nn.Module, context: nn.Module):
        super().__init__()
        self.edges, self.nodes, self.context = edges, nodes, context

    def forward(self, graph: Graph) -> Graph:
        v, u, links = graph.nodes, graph.context, graph.links
        edges = self.edges(graph.edges, pool_nodes_to_edges(v, links), spread_to_edges(u, links))
        told = pool_edges_to_nodes(edges, links), pool_neighbours(v, links), spread_to_nodes(u, links)
        nodes = self.nodes(v, *told)
        context = self.context(u, pool_nodes_to_context(nodes, links), pool_edges_to_context(edges, links))
        return graph.update(nodes, edges, context)


class VirtualEdges(nn.Module):
    """A node layer on the complete graph: n (n − 1) edges, whatever edges there are"""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, links: Links) -> Tensor:
        return self.layer(x, links.complete)
