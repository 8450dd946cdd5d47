"""Feature-wise linear modulation (FiLM): a condition scales and shifts every feature.

    FiLM(h | c) = γ(c) ⊙ h + β(c)        γ(c) = 1 + W_γ c + b_γ        β(c) = W_β c + b_β

With W = b = 0 it is γ = 1 and β = 0, which changes nothing. The nodes of a graph are modulated by the context of
their own graph: c = U[owner].

Systems: film-conditioning
"""

from __future__ import annotations

from torch import Tensor, nn

from descend.ops.graph.pooling import spread_to_nodes
from descend.ops.graph.structure import Graph


class FiLM(nn.Module):
    """h (.., width) and conditions c (.., condition) -> (.., width)"""

    def __init__(self, condition: int, width: int):
        super().__init__()
        self.modulate = nn.Linear(condition, 2 * width)
        nn.init.zeros_(self.modulate.bias)

    def forward(self, h: Tensor, c: Tensor) -> Tensor:
        gamma, beta = self.modulate(c).chunk(2, dim=-1)
        return (1 + gamma) * h + beta


class NodeFiLM(nn.Module):
    """graph -> graph, its nodes modulated by its context"""

    def __init__(self, context: int, width: int):
        super().__init__()
        self.film = FiLM(context, width)

    def forward(self, graph: Graph) -> Graph:
        return graph.update(self.film(graph.nodes, spread_to_nodes(graph.context, graph.links)))
