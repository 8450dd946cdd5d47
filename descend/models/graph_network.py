"""Graph network: blocks in which edges, nodes and a context of the whole graph learn from each other.

    v⁰ = W_V v + b      e⁰ = W_E e + b      u⁰ = W_U u + b            attributes of any sizes, or none: b alone
    (V, E, U)⁽ᵏ⁾ = block( (V, E, U)⁽ᵏ⁻¹⁾ ),  k = 1..K                 `descend.nn.graph.context`
    ŷ_v = PREDICT([v ‖ u])        ŷ_uv = PREDICT([ends(v_u, v_v) ‖ u])        ŷ_G = PREDICT(u)

What an attribute is told by the others is put beside it, added after a linear map, or modulates it. Each update is a
network of two layers with a layer norm behind it, so that sums over many neighbours do not grow from block to block.

Systems: global-context-block, graph-task-levels
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from descend.models._graph_heads import Ends, make_two_graphs
from descend.nn.graph.combination import Addition, Concatenation, Modulation
from descend.nn.graph.context import GlobalContextBlock
from descend.nn.graph.heads import ENDS, make_perceptron
from descend.nn.graph.independent import GraphIndependent
from descend.ops.graph.pooling import spread_to_nodes
from descend.ops.graph.structure import Graph
from descend.ranges import Depth, Whole, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

COMBINATIONS: dict[str, Callable[[int, Sequence[int], nn.Module], nn.Module]] = {
    "addition": Addition,
    "modulation": Modulation,
}


@dataclass(frozen=True)
class GraphNetworkConfig:
    """Three blocks; a recipe takes inputs, edges, context and outputs from its data."""

    inputs: Whole = 16
    """Attributes of a node; 0 where there are none."""
    edges: Whole = 0
    """Attributes of an edge."""
    context: Whole = 0
    """Attributes of a whole graph."""
    width: Width = 64
    outputs: Width = 1
    depth: Depth = 3
    combination: Literal["concatenation", "addition", "modulation"] = "concatenation"
    ends: Ends = "multiplied"
    """How a network for pairs of nodes brings their vectors together."""

    def __post_init__(self) -> None:
        for field, known in (("combination", ("concatenation", *COMBINATIONS)), ("ends", tuple(ENDS))):
            name = getattr(self, field)
            if name not in known:
                raise ValueError(f"{field} {name!r} is unknown; known: {', '.join(known)}")


class SameVector(nn.Module):
    """b for each row, where there is nothing to map: (m, 0) -> (m, width)"""

    def __init__(self, width: int):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width) / width**0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.bias.expand(len(x), -1)


def make_embedding(inputs: int, width: int) -> nn.Module:
    """Attributes (m, inputs) -> (m, width)"""
    return nn.Linear(inputs, width) if inputs else SameVector(width)


def make_update(combination: str, width: int, told: int) -> nn.Module:
    """How an attribute takes so many vectors of the others."""
    inputs = (1 + told) * width if combination == "concatenation" else width
    f = nn.Sequential(make_perceptron(inputs, width, width), nn.LayerNorm(width))
    return COMBINATIONS[combination](width, [width] * told, f) if combination in COMBINATIONS else Concatenation(f)


class GraphNetworkEncoder(Pretrained):
    """Embeddings of the attributes, and blocks."""

    Config = GraphNetworkConfig

    def __init__(self, config: GraphNetworkConfig):
        super().__init__()
        c = self.config = config
        self.embed = GraphIndependent(*(make_embedding(n, c.width) for n in (c.inputs, c.edges, c.context)))
        self.blocks = nn.ModuleList(
            GlobalContextBlock(*(make_update(c.combination, c.width, told) for told in (2, 3, 2)))
            for _ in range(c.depth)
        )

    def encode(self, graph: Graph) -> Graph:
        """The same links with vectors (.., width)."""
        graph = self.embed(graph)
        for block in self.blocks:
            graph = block(graph)
        return graph


class GraphNetwork(GraphNetworkEncoder):
    """graph -> graph"""

    def forward(self, graph: Graph) -> Graph:
        return self.encode(graph)


class GraphNetworkForNodes(GraphNetworkEncoder):
    """graph -> (n, outputs)"""

    def __init__(self, config: GraphNetworkConfig):
        super().__init__(config)
        self.predict = make_perceptron(2 * config.width, config.width, config.outputs)

    def forward(self, graph: Graph) -> Tensor:
        graph = self.encode(graph)
        return self.predict(torch.cat([graph.nodes, spread_to_nodes(graph.context, graph.links)], dim=-1))


class GraphNetworkForEdges(GraphNetworkEncoder):
    """graph, and pairs of its nodes (m, 2) -> (m, outputs); without pairs, for each edge"""

    def __init__(self, config: GraphNetworkConfig):
        super().__init__(config)
        ends, times = ENDS[config.ends]
        self.ends = ends()
        self.predict = make_perceptron((times + 1) * config.width, config.width, config.outputs)

    def forward(self, graph: Graph, pairs: Tensor | None = None) -> Tensor:
        links, graph = graph.links, self.encode(graph)
        u, v = (links.source, links.target) if pairs is None else pairs.unbind(1)
        context = graph.context.index_select(0, links.owner[u])
        ends = self.ends(graph.nodes.index_select(0, u), graph.nodes.index_select(0, v))
        return self.predict(torch.cat([ends, context], dim=-1))


class GraphNetworkForGraphs(GraphNetworkEncoder):
    """graphs -> (g, outputs)"""

    def __init__(self, config: GraphNetworkConfig):
        super().__init__(config)
        self.predict = make_perceptron(config.width, config.width, config.outputs)

    def forward(self, graph: Graph) -> Tensor:
        return self.predict(self.encode(graph).context)


TINY = GraphNetworkConfig(inputs=5, edges=0, width=6, outputs=3, depth=2)


def TINY_INPUT() -> Graph:
    """Two graphs."""
    return make_two_graphs(TINY.inputs)


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "GraphNetworkModel": GraphNetwork,
    "GraphNetworkForNodes": GraphNetworkForNodes,
    "GraphNetworkForEdges": GraphNetworkForEdges,
    "GraphNetworkForGraphs": GraphNetworkForGraphs,
}

LAYOUT = Layout("GraphNetworkForGraphs")
