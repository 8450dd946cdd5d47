"""Stacked polynomial filters: each layer is a polynomial of the graph's Laplacian with coefficients of its own.

    h⁽⁰⁾ = x        g⁽ᵏ⁾ = p_{w⁽ᵏ⁾}(L) h⁽ᵏ⁻¹⁾        h⁽ᵏ⁾ = relu(g⁽ᵏ⁾)        k = 1..K
    p_w(L) h = Σ_{i=0}^d Lⁱ h W_i        for one channel Σ_i w_i Lⁱ h: K (d + 1) parameters, whatever the graph

The filter's weights are shared by all nodes, and there is no bias. L = D − A ("none") grows like the largest degree to
the d-th power; the symmetric form, whose eigenvalues end at 2, is what trains well. Dropout stands before every layer.
The last layer of a network for nodes gives the logits; networks for graphs and for pairs of nodes have a head on node
vectors. ChebNet (`chebnet.py`) takes another basis for the same polynomials.

Systems: polynomial-graph-filter, graph-task-levels
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
from descend.nn.graph.polynomial import PolynomialFilter
from descend.ops.graph.laplacian import LAPLACIANS
from descend.ops.graph.structure import Graph
from descend.ranges import Depth, Few, Fraction, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class PolynomialGCNConfig:
    """Two layers that see two hops each; a recipe takes inputs and outputs from its data."""

    inputs: Width = 1433
    width: Width = 16
    outputs: Width = 7
    depth: Depth = 2
    """K"""
    degree: Few = 2
    """d, how many hops a layer sees."""
    laplacian: Literal["none", "symmetric"] = "symmetric"
    dropout: Fraction = 0.5
    readout: Readout = "mean"
    """Of a network for graphs."""
    ends: Ends = "multiplied"
    """How a network for pairs of nodes brings their vectors together."""

    def __post_init__(self) -> None:
        check_names(self)
        if self.laplacian not in LAPLACIANS:
            raise ValueError(f"laplacian {self.laplacian!r} is unknown; known: {', '.join(LAPLACIANS)}")


class PolynomialGCNEncoder(GraphEncoder):
    """Polynomial filters with ReLU between them; `last` is the width of the last one."""

    Config = PolynomialGCNConfig

    def __init__(self, config: PolynomialGCNConfig, last: int = 0):
        super().__init__()
        c = self.config = config
        widths = (c.inputs, *[c.width] * (c.depth - 1), last or c.width)
        self.layers = nn.ModuleList(
            PolynomialFilter(n, out, c.degree, LAPLACIANS[c.laplacian], bias=False, dropout=c.dropout)
            for n, out in pairwise(widths)
        )

    def hidden(self, graph: Graph) -> Tensor:
        first, *others = self.layers
        x = first(graph.nodes, graph.links)
        for layer in others:
            x = layer(x.relu(), graph.links)
        return x


class PolynomialGCN(ForVectors, PolynomialGCNEncoder):
    """graph -> node vectors (n, width)"""


class PolynomialGCNForNodes(ForVectors, PolynomialGCNEncoder):
    """graph -> logits of its nodes (n, outputs), by the last layer"""

    def __init__(self, config: PolynomialGCNConfig):
        super().__init__(config, config.outputs)


class PolynomialGCNForEdges(ForEdges, PolynomialGCNEncoder):
    """graph, and pairs of its nodes (m, 2) -> (m, outputs)"""


class PolynomialGCNForGraphs(ForGraphs, PolynomialGCNEncoder):
    """graphs -> (g, outputs)"""


TINY = PolynomialGCNConfig(inputs=5, width=6, outputs=3, dropout=0.0)


def TINY_INPUT() -> Graph:
    """Two graphs."""
    return make_two_graphs(TINY.inputs)


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "PolynomialGCNModel": PolynomialGCN,
    "PolynomialGCNForNodes": PolynomialGCNForNodes,
    "PolynomialGCNForEdges": PolynomialGCNForEdges,
    "PolynomialGCNForGraphs": PolynomialGCNForGraphs,
}

LAYOUT = Layout("PolynomialGCNForNodes")
