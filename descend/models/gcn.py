"""Graph convolutional network: each layer averages what the neighbours of a node say, and maps it.

    Kipf    Z = Â relu(Â X W_1) W_2,    Â = D̃^{-½} (A + I) D̃^{-½}        for nodes: Z holds the logits
    h_v⁽ᵏ⁾ = f( W⁽ᵏ⁾ Σ_{u ∈ N(v)} h_u⁽ᵏ⁻¹⁾ / |N(v)| + B⁽ᵏ⁾ h_v⁽ᵏ⁻¹⁾ )      form="mean", the first of DLN

The three forms are in `descend.nn.graph.convolution`; f is ReLU between layers, there is no bias, and dropout
stands before every layer, on the input features too. The last layer of a network for nodes gives the logits, as
published: 1433-16-7 on Cora. Networks for graphs and for pairs of nodes have a head on node vectors.

Systems: gcn, graph-task-levels
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from torch import Tensor, nn

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
from descend.nn.graph.convolution import KipfConvolution, MeanConvolution, SymmetricConvolution
from descend.ops.graph.structure import Graph
from descend.ranges import Depth, Fraction, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

FORMS: dict[str, type[KipfConvolution | MeanConvolution | SymmetricConvolution]] = {
    "kipf": KipfConvolution,
    "mean": MeanConvolution,
    "symmetric": SymmetricConvolution,
}


@dataclass(frozen=True)
class GCNConfig:
    """The network on Cora; a recipe takes inputs and outputs from its data."""

    inputs: Width = 1433
    width: Width = 16
    outputs: Width = 7
    depth: Depth = 2
    """Graph convolutions: how many hops a node sees."""
    form: Literal["kipf", "mean", "symmetric"] = "kipf"
    dropout: Fraction = 0.5
    readout: Readout = "mean"
    """Of a network for graphs."""
    ends: Ends = "multiplied"
    """How a network for pairs of nodes brings their vectors together."""

    def __post_init__(self) -> None:
        check_names(self)
        if self.form not in FORMS:
            raise ValueError(f"form {self.form!r} is unknown; known: {', '.join(FORMS)}")


class GCNEncoder(GraphEncoder):
    """Graph convolutions with ReLU between them; `last` is the width of the last one."""

    Config = GCNConfig

    def __init__(self, config: GCNConfig, last: int = 0):
        super().__init__()
        c = self.config = config
        widths = (c.inputs, *[c.width] * (c.depth - 1), last or c.width)
        self.layers = nn.ModuleList(FORMS[c.form](n, out, c.dropout) for n, out in pairwise(widths))

    def hidden(self, graph: Graph) -> Tensor:
        first, *others = self.layers
        x = first(graph.nodes, graph.links)
        for layer in others:
            x = layer(x.relu(), graph.links)
        return x


class GCN(ForVectors, GCNEncoder):
    """graph -> node vectors (n, width)"""


class GCNForNodes(ForVectors, GCNEncoder):
    """graph -> logits of its nodes (n, outputs), by the last layer"""

    def __init__(self, config: GCNConfig):
        super().__init__(config, config.outputs)


class GCNForEdges(ForEdges, GCNEncoder):
    """graph, and pairs of its nodes (m, 2) -> (m, outputs)"""


class GCNForGraphs(ForGraphs, GCNEncoder):
    """graphs -> (g, outputs)"""


SIZES = {"gcn-cora": GCNConfig()}
PARAMETERS = {"gcn-cora": 23_040}
TINY = GCNConfig(inputs=5, width=6, outputs=3, dropout=0.0)


def TINY_INPUT() -> Graph:
    """Two graphs."""
    return make_two_graphs(TINY.inputs)


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "GCNModel": GCN,
    "GCNForNodes": GCNForNodes,
    "GCNForEdges": GCNForEdges,
    "GCNForGraphs": GCNForGraphs,
}

LAYOUT = Layout("GCNForNodes")
