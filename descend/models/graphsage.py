"""GraphSAGE: each layer puts what a sample of the neighbours says beside what the node says.

    h_v⁽ᵏ⁾ = relu( W⁽ᵏ⁾ [ AGG_{u ∈ N(v)} h_u⁽ᵏ⁻¹⁾ ‖ h_v⁽ᵏ⁻¹⁾ ] )         AGG: mean, inclusive mean (DLN), max, LSTM

The aggregators are in `descend.nn.graph.sage`; DLN's mean contains h_v, which stands beside it again. Every layer
can end in a norm: vectors of length 1, as published, or none. The network sees all neighbours that the graph has; a
stream that samples them gives a smaller graph. Dropout stands before every layer. The last layer has no ReLU; a
network for nodes takes its logits from it, as usual on citation graphs. Nothing belongs to a single node, so new
nodes and new graphs have vectors.

Systems: graphsage, graph-task-levels
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
from descend.nn.graph.features import FeatureLinear
from descend.nn.graph.sage import InclusiveMean, NeighbourLSTM, NeighbourMean, PooledMax, SAGELayer, UnitLength
from descend.ops.graph.structure import Graph
from descend.ranges import Depth, Fraction, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

AGGREGATORS: dict[str, type[NeighbourMean | InclusiveMean | PooledMax | NeighbourLSTM]] = {
    "mean": NeighbourMean,
    "inclusive": InclusiveMean,
    "max": PooledMax,
    "lstm": NeighbourLSTM,
}
NORMS: dict[str, type[nn.Module]] = {"none": nn.Identity, "length": UnitLength}


@dataclass(frozen=True)
class GraphSAGEConfig:
    """Two layers; a recipe takes inputs and outputs from its data."""

    inputs: Width = 1433
    width: Width = 64
    outputs: Width = 7
    depth: Depth = 2
    """Layers: how many hops a node sees."""
    aggregator: Literal["mean", "inclusive", "max", "lstm"] = "mean"
    norm: Literal["none", "length"] = "none"
    """After every layer but the last of a network for nodes, whose logits have no length to keep."""
    dropout: Fraction = 0.5
    readout: Readout = "mean"
    """Of a network for graphs."""
    ends: Ends = "multiplied"
    """How a network for pairs of nodes brings their vectors together."""

    def __post_init__(self) -> None:
        check_names(self)
        for field, known in (("aggregator", tuple(AGGREGATORS)), ("norm", tuple(NORMS))):
            name = getattr(self, field)
            if name not in known:
                raise ValueError(f"{field} {name!r} is unknown; known: {', '.join(known)}")


class GraphSAGEEncoder(GraphEncoder):
    """Layers with ReLU between them; `logits` is the width of a last layer that is not normed."""

    Config = GraphSAGEConfig

    def __init__(self, config: GraphSAGEConfig, logits: int = 0):
        super().__init__()
        c = self.config = config
        widths = (c.inputs, *[c.width] * (c.depth - 1), logits or c.width)
        self.layers = nn.ModuleList(
            SAGELayer(AGGREGATORS[c.aggregator](n, out, c.dropout), FeatureLinear(n, out, True, c.dropout))
            for n, out in pairwise(widths)
        )
        self.norm, self.last = NORMS[c.norm](), nn.Identity() if logits else NORMS[c.norm]()

    def hidden(self, graph: Graph, u: Tensor | None = None) -> Tensor:
        """Node vectors (n, width); `u` (e) orders the neighbours that an LSTM reads."""
        *others, last = self.layers
        x = graph.nodes
        for layer in others:
            x = self.norm(layer(x, graph.links, u).relu())
        return self.last(last(x, graph.links, u))


class GraphSAGE(ForVectors, GraphSAGEEncoder):
    """graph -> node vectors (n, width)"""


class GraphSAGEForNodes(ForVectors, GraphSAGEEncoder):
    """graph -> logits of its nodes (n, outputs), by the last layer"""

    def __init__(self, config: GraphSAGEConfig):
        super().__init__(config, config.outputs)


class GraphSAGEForEdges(ForEdges, GraphSAGEEncoder):
    """graph, and pairs of its nodes (m, 2) -> (m, outputs)"""


class GraphSAGEForGraphs(ForGraphs, GraphSAGEEncoder):
    """graphs -> (g, outputs)"""


TINY = GraphSAGEConfig(inputs=5, width=6, outputs=3, dropout=0.0)


def TINY_INPUT() -> Graph:
    """Two graphs."""
    return make_two_graphs(TINY.inputs)


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "GraphSAGEModel": GraphSAGE,
    "GraphSAGEForNodes": GraphSAGEForNodes,
    "GraphSAGEForEdges": GraphSAGEForEdges,
    "GraphSAGEForGraphs": GraphSAGEForGraphs,
}

LAYOUT = Layout("GraphSAGEForNodes")
