"""Graph isomorphism network: sums that lose nothing, and a readout of every layer.

    h_v⁽ᵏ⁾ = relu( norm( f⁽ᵏ⁾( (1 + ε⁽ᵏ⁾) h_v⁽ᵏ⁻¹⁾ + Σ_{u ∈ N(v)} h_u⁽ᵏ⁻¹⁾ ) ) )          f: W_2 relu(norm(W_1 ·))
    ŷ_G = W drop[ Σ_v h_v⁽⁰⁾ ‖ Σ_v h_v⁽¹⁾ ‖ .. ‖ Σ_v h_v⁽ᴷ⁾ ]                             sums of every layer

norm is a batch norm, ε⁽ᵏ⁾ is 0 or learned. It tells graphs apart as well as the Weisfeiler-Lehman test does.
Published with four layers; a linear map of the sums end to end is the published sum of one linear map for each
layer. Networks for nodes and for pairs of nodes have a head on the vectors of the last layer.

Systems: gin, graph-task-levels
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from descend.models._graph_heads import (
    Ends,
    ForEdges,
    ForNodes,
    ForVectors,
    GraphEncoder,
    Readout,
    check_names,
    make_two_graphs,
)
from descend.nn.graph.isomorphism import FixedEpsilon, IsomorphismLayer, LearnedEpsilon, make_injective
from descend.nn.graph.readouts import READOUTS
from descend.ops.graph.structure import Graph
from descend.ranges import Depth, Fraction, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

EPSILONS: dict[str, type[FixedEpsilon | LearnedEpsilon]] = {"fixed": FixedEpsilon, "learned": LearnedEpsilon}


@dataclass(frozen=True)
class GINConfig:
    """Four layers, as published; a recipe takes inputs and outputs from its data."""

    inputs: Width = 7
    width: Width = 32
    outputs: Width = 2
    depth: Depth = 4
    """Layers, not counting the input: how many hops a node sees."""
    epsilon: Literal["fixed", "learned"] = "fixed"
    dropout: Fraction = 0.5
    """Before the map to the outputs of a graph."""
    readout: Readout = "sum"
    """Of a network for graphs."""
    ends: Ends = "multiplied"
    """How a network for pairs of nodes brings their vectors together."""

    def __post_init__(self) -> None:
        check_names(self)
        if self.epsilon not in EPSILONS:
            raise ValueError(f"epsilon {self.epsilon!r} is unknown; known: {', '.join(EPSILONS)}")


class GINEncoder(GraphEncoder):
    """Layers of sums, each with a batch norm and ReLU behind it."""

    Config = GINConfig

    def __init__(self, config: GINConfig):
        super().__init__()
        c = self.config = config
        widths = (c.inputs, *[c.width] * c.depth)
        self.layers = nn.ModuleList(
            IsomorphismLayer(make_injective(n, out, out), EPSILONS[c.epsilon]()) for n, out in pairwise(widths)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(c.width) for _ in range(c.depth))

    def follow(self, graph: Graph) -> list[Tensor]:
        """Node vectors of every layer, the input first."""
        steps = [graph.nodes]
        for layer, norm in zip(self.layers, self.norms, strict=True):
            steps.append(norm(layer(steps[-1], graph.links)).relu())
        return steps

    def hidden(self, graph: Graph) -> Tensor:
        return self.follow(graph)[-1]


class GIN(ForVectors, GINEncoder):
    """graph -> node vectors (n, width)"""


class GINForNodes(ForNodes, GINEncoder):
    """graph -> (n, outputs)"""


class GINForEdges(ForEdges, GINEncoder):
    """graph, and pairs of its nodes (m, 2) -> (m, outputs)"""


class GINForGraphs(GINEncoder):
    """graphs -> (g, outputs)"""

    def __init__(self, config: GINConfig):
        super().__init__(config)
        c = config
        self.readout, self.drop = READOUTS[c.readout](), nn.Dropout(c.dropout)
        self.predict = nn.Linear(c.inputs + c.depth * c.width, c.outputs)

    def forward(self, graph: Graph) -> Tensor:
        sums = [self.readout(x, graph.links) for x in self.follow(graph)]
        return self.predict(self.drop(torch.cat(sums, dim=-1)))


TINY = GINConfig(inputs=5, width=6, outputs=3, depth=2, dropout=0.0, epsilon="learned")


def TINY_INPUT() -> Graph:
    """Two graphs."""
    return make_two_graphs(TINY.inputs)


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "GINModel": GIN,
    "GINForNodes": GINForNodes,
    "GINForEdges": GINForEdges,
    "GINForGraphs": GINForGraphs,
}

LAYOUT = Layout("GINForGraphs")
