"""ChebNet: each layer is a filter of the graph's spectrum, a sum of Chebyshev polynomials of its Laplacian.

    h⁽ᵏ⁾ = relu( Σ_{i=0}^d T_i(L̃) h⁽ᵏ⁻¹⁾ W_i⁽ᵏ⁾ + b⁽ᵏ⁾ )        L̃ = 2 L / λ_max − I,   h⁽⁰⁾ = x

The Laplacian is the symmetric one (or "none": D − A), λ_max a bound (2 for the symmetric one), exact, or found by power
iteration; the layer is in `descend.nn.graph.polynomial`. `degree` is d: PyG's ChebConv counts terms, K = d + 1. A layer
sees d hops. Dropout stands before every layer. The last layer of a network for nodes gives the logits; networks for
graphs and for pairs of nodes have a head on node vectors.

Systems: chebnet, graph-task-levels
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
from descend.nn.graph.polynomial import ChebyshevFilter
from descend.ops.graph.laplacian import EIGENVALUES, LAPLACIANS
from descend.ops.graph.structure import Graph
from descend.ranges import Depth, Few, Fraction, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class ChebNetConfig:
    """The network on Cora; a recipe takes inputs and outputs from its data."""

    inputs: Width = 1433
    width: Width = 16
    outputs: Width = 7
    depth: Depth = 2
    degree: Few = 2
    """Of the polynomials: how many hops a layer sees."""
    laplacian: Literal["none", "symmetric"] = "symmetric"
    largest: Literal["bound", "exact", "power"] = "bound"
    """How the largest eigenvalue is found."""
    dropout: Fraction = 0.5
    readout: Readout = "mean"
    """Of a network for graphs."""
    ends: Ends = "multiplied"
    """How a network for pairs of nodes brings their vectors together."""

    def __post_init__(self) -> None:
        check_names(self)
        for field, known in (("laplacian", LAPLACIANS), ("largest", EIGENVALUES)):
            if getattr(self, field) not in known:
                raise ValueError(f"{field} {getattr(self, field)!r} is unknown; known: {', '.join(known)}")


class ChebNetEncoder(GraphEncoder):
    """Chebyshev filters with ReLU between them; `last` is the width of the last one."""

    Config = ChebNetConfig

    def __init__(self, config: ChebNetConfig, last: int = 0):
        super().__init__()
        c = self.config = config
        widths = (c.inputs, *[c.width] * (c.depth - 1), last or c.width)
        laplacian, largest = LAPLACIANS[c.laplacian], EIGENVALUES[c.largest]
        self.layers = nn.ModuleList(
            ChebyshevFilter(n, out, c.degree, laplacian, largest, dropout=c.dropout) for n, out in pairwise(widths)
        )

    def hidden(self, graph: Graph) -> Tensor:
        first, *others = self.layers
        x = first(graph.nodes, graph.links)
        for layer in others:
            x = layer(x.relu(), graph.links)
        return x


class ChebNet(ForVectors, ChebNetEncoder):
    """graph -> node vectors (n, width)"""


class ChebNetForNodes(ForVectors, ChebNetEncoder):
    """graph -> logits of its nodes (n, outputs), by the last layer"""

    def __init__(self, config: ChebNetConfig):
        super().__init__(config, config.outputs)


class ChebNetForEdges(ForEdges, ChebNetEncoder):
    """graph, and pairs of its nodes (m, 2) -> (m, outputs)"""


class ChebNetForGraphs(ForGraphs, ChebNetEncoder):
    """graphs -> (g, outputs)"""


SIZES = {"chebnet-cora": ChebNetConfig()}
PARAMETERS = {"chebnet-cora": 3 * (1433 * 16 + 16 * 7) + 16 + 7}
TINY = ChebNetConfig(inputs=5, width=6, outputs=3, dropout=0.0)


def TINY_INPUT() -> Graph:
    """Two graphs."""
    return make_two_graphs(TINY.inputs)


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "ChebNetModel": ChebNet,
    "ChebNetForNodes": ChebNetForNodes,
    "ChebNetForEdges": ChebNetForEdges,
    "ChebNetForGraphs": ChebNetForGraphs,
}

LAYOUT = Layout("ChebNetForNodes")
