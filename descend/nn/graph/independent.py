"""The simplest graph layer: three networks, for nodes, edges and context, and no use of the links.

    v' = f_V(v)        e' = f_E(e)        u' = f_U(u)

Graph in, graph out: the links do not change, and a node hears of no other.

Systems: graph-independent-layer
"""

from __future__ import annotations

from torch import nn

from descend.ops.graph.structure import Graph


class GraphIndependent(nn.Module):
    """graph -> graph, each attribute by a network of its own"""

    def __init__(self, nodes: nn.Module, edges: nn.Module, context: nn.Module):
        super().__init__()
        self.nodes, self.edges, self.context = nodes, edges, context

    def forward(self, graph: Graph) -> Graph:
        return graph.update(self.nodes(graph.nodes), self.edges(graph.edges), self.context(graph.context))
