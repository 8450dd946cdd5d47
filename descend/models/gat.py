"""Graph attention network: a node weighs what it hears, by several heads at once.

    h_v' = elu( ‖_{heads} Σ_{u ∈ N(v) ∪ {v}} α_vu W h_u )         the last layer averages its heads, without elu
    α_vu = softmax_u( s(v, u) )                                     s additive, slope 0.2, as published

`descend.nn.graph.attention` has the equations; v is in its own neighbourhood (an erratum of DLN, whose normaliser
leaves it out). Dropout stands before every layer, on the input features too, and on α. The last layer of a network
for nodes gives the logits, as published: 8 heads of 8, then one of 7 classes on Cora. Other networks have a head on
node vectors.

Systems: gat, graph-task-levels
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.models._graph_heads import (
    Ends,
    ForEdges,
    ForGraphs,
    ForVectors,
    GraphEncoder,
    Readout,
    check_names,
    make_two_graphs,
)
from descend.nn.graph.attention import AdditiveScore, DotScore, GraphAttention, HeadMean, NetworkScore
from descend.nn.graph.heads import make_perceptron
from descend.ops.graph.structure import Graph
from descend.ranges import Depth, Fraction, NonNegative, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

SCORES: dict[str, Callable[[int, int, float], nn.Module]] = {
    "additive": AdditiveScore,
    "dot": lambda heads, size, slope: DotScore(),
    "network": lambda heads, size, slope: NetworkScore(make_perceptron(2 * size, size, 1)),
}


@dataclass(frozen=True)
class GATConfig:
    """The network on Cora; a recipe takes inputs and outputs from its data."""

    inputs: Width = 1433
    width: Width = 64
    """Of a layer: of all heads together."""
    heads: Width = 8
    last_heads: Width = 1
    outputs: Width = 7
    depth: Depth = 2
    """Layers of attention: how many hops a node sees."""
    score: Literal["additive", "dot", "network"] = "additive"
    slope: NonNegative = 0.2
    """Of the additive score below 0."""
    dropout: Fraction = 0.6
    attention_dropout: Fraction = 0.6
    readout: Readout = "mean"
    """Of a network for graphs."""
    ends: Ends = "multiplied"
    """How a network for pairs of nodes brings their vectors together."""

    def __post_init__(self) -> None:
        check_names(self)
        if self.score not in SCORES:
            raise ValueError(f"score {self.score!r} is unknown; known: {', '.join(SCORES)}")
        if self.width % self.heads:
            raise ValueError(f"width {self.width} cannot be shared by {self.heads} heads; make it a multiple")


class GATEncoder(GraphEncoder):
    """Layers of attention with ELU between them; `last` is the width of the last one."""

    Config = GATConfig

    def __init__(self, config: GATConfig, last: int = 0):
        super().__init__()
        c = self.config = config
        size, last = c.width // c.heads, last or c.width
        drops = c.dropout, c.attention_dropout
        widths = [c.inputs, *[c.width] * (c.depth - 1)]
        score = SCORES[c.score]
        self.layers = nn.ModuleList(
            GraphAttention(n, c.heads, size, score(c.heads, size, c.slope), nn.Flatten(1), *drops) for n in widths[:-1]
        )
        end = score(c.last_heads, last, c.slope)
        self.layers.append(GraphAttention(widths[-1], c.last_heads, last, end, HeadMean(), *drops))

    def hidden(self, graph: Graph) -> Tensor:
        x = graph.nodes
        for k, layer in enumerate(self.layers):
            x = layer(F.elu(x) if k else x, graph.links)
        return x

    @torch.no_grad()
    def attention(self, graph: Graph) -> list[Tensor]:
        """α (e + n, heads) of every layer: of the edges in their order, then of every node to itself."""
        x, shares = graph.nodes, []
        for k, layer in enumerate(self.layers):
            assert isinstance(layer, GraphAttention)
            x, share = layer.attend(F.elu(x) if k else x, graph.links)
            shares.append(share)
        return shares


class GAT(ForVectors, GATEncoder):
    """graph -> node vectors (n, width)"""


class GATForNodes(ForVectors, GATEncoder):
    """graph -> logits of its nodes (n, outputs), by the last layer"""

    def __init__(self, config: GATConfig):
        super().__init__(config, config.outputs)


class GATForEdges(ForEdges, GATEncoder):
    """graph, and pairs of its nodes (m, 2) -> (m, outputs)"""


class GATForGraphs(ForGraphs, GATEncoder):
    """graphs -> (g, outputs)"""


SIZES = {"gat-cora": GATConfig()}
PARAMETERS = {"gat-cora": 92_373}
TINY = GATConfig(inputs=5, width=6, heads=2, last_heads=2, outputs=3, dropout=0.0, attention_dropout=0.0)


def TINY_INPUT() -> Graph:
    """Two graphs."""
    return make_two_graphs(TINY.inputs)


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "GATModel": GAT,
    "GATForNodes": GATForNodes,
    "GATForEdges": GATForEdges,
    "GATForGraphs": GATForGraphs,
}

LAYOUT = Layout("GATForNodes")
