"""Message passing, the form that all graph networks share: a message along every edge, an aggregation, an update.

    m_v = AGG_{u → v} f(h_u, h_v, e_uv)        h'_v = g(h_v, m_v)        h_G = readout({h'_v})

f, AGG, g and the readout are modules, shared by all nodes; k layers reach exactly k hops. Each named layer is a choice:

    GCN         f = h_u / √(d_u d_v), with loops    AGG = Σ            g = W m
    GraphSAGE   f = h_u                             AGG = mean, max    g = W [m ‖ h_v]
    GAT         f = α_vu W h_u, with loops          AGG = Σ            g = m + b
    GIN         f = h_u                             AGG = Σ            g = MLP((1 + ε) h_v + m)

This is the readable form, which writes out every message; the layers of their own files give the same numbers faster.

Systems: message-passing
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from descend.ops.graph.aggregate import max_groups, mean_groups, softmax_groups, sum_groups
from descend.ops.graph.structure import Graph, Links

AGGREGATIONS: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "sum": sum_groups,
    "mean": mean_groups,
    "max": max_groups,
}


class MessagePassing(nn.Module):
    """graph -> graph

    message: (source (e, d), target (e, d), edges (e, k), links) -> (e, m).
    update: (nodes (n, d), heard (n, m)) -> (n, d').
    readout: (nodes (n, d'), links) -> (g, u), the new context; without one the context stays.
    """

    def __init__(self, message: nn.Module, aggregation: str, update: nn.Module, readout: nn.Module | None = None):
        super().__init__()
        self.message, self.update, self.readout = message, update, readout
        self.aggregate = AGGREGATIONS[aggregation]

    def forward(self, graph: Graph) -> Graph:
        h, links = graph.nodes, graph.links
        source, target = h.index_select(0, links.source), h.index_select(0, links.target)
        heard = self.aggregate(self.message(source, target, graph.edges, links), links.target, links.n)
        nodes = self.update(h, heard)
        return graph.update(nodes, context=None if self.readout is None else self.readout(nodes, links))


class SourceMessage(nn.Module):
    """h_u"""

    def forward(self, source: Tensor, target: Tensor, edges: Tensor, links: Links) -> Tensor:
        return source


class BalancedMessage(nn.Module):
    """h_u / √(d_u d_v)"""

    def forward(self, source: Tensor, target: Tensor, edges: Tensor, links: Links) -> Tensor:
        return source * links.balance[:, None].to(source.dtype)


class NetworkMessage(nn.Module):
    """A network on [h_u ‖ h_v ‖ e_uv]"""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, source: Tensor, target: Tensor, edges: Tensor, links: Links) -> Tensor:
        return self.network(torch.cat([source, target, edges], dim=-1))


class AttendedMessage(nn.Module):
    """α_vu W h_u, α a softmax over the messages of each target of a score of [W h_v ‖ W h_u]"""

    def __init__(self, linear: nn.Module, score: nn.Module):
        super().__init__()
        self.linear, self.score = linear, score

    def forward(self, source: Tensor, target: Tensor, edges: Tensor, links: Links) -> Tensor:
        there, here = self.linear(source), self.linear(target)
        return softmax_groups(self.score(torch.cat([here, there], dim=-1)), links.target, links.n) * there


class HeardUpdate(nn.Module):
    """f(m): the node hears itself by its loop, or not at all"""

    def __init__(self, f: nn.Module):
        super().__init__()
        self.f = f

    def forward(self, nodes: Tensor, heard: Tensor) -> Tensor:
        return self.f(heard)


class JoinedUpdate(nn.Module):
    """f([m ‖ h_v])"""

    def __init__(self, f: nn.Module):
        super().__init__()
        self.f = f

    def forward(self, nodes: Tensor, heard: Tensor) -> Tensor:
        return self.f(torch.cat([heard, nodes], dim=-1))


class AddedUpdate(nn.Module):
    """f((1 + ε) h_v + m)"""

    def __init__(self, f: nn.Module, epsilon: nn.Module):
        super().__init__()
        self.f, self.epsilon = f, epsilon

    def forward(self, nodes: Tensor, heard: Tensor) -> Tensor:
        return self.f((1 + self.epsilon()) * nodes + heard)
