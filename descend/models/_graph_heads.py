"""Graph encoders and the heads on them, each written once; the families of graph networks combine them.

    class GCNForGraphs(ForGraphs, GCNEncoder)

    ForNodes     ŷ_v = PREDICT(h_v)                      a class for each node
    ForEdges     ŷ_uv = PREDICT(ends(h_u, h_v))          for each of some pairs of nodes, or for each edge
    ForGraphs    ŷ_G = PREDICT(readout({h_v}))           for each graph

The equations of the heads are in `descend.nn.graph.heads`. A head reads the encoder's `hidden` vectors (n, width).

Systems: graph-task-levels
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from descend.nn.graph.heads import ENDS, EdgeHead, GraphHead, NodeHead, make_perceptron
from descend.nn.graph.readouts import READOUTS
from descend.ops.graph.structure import Graph, build_graph
from descend.weights.pretrained import Pretrained

Readout = Literal["sum", "mean", "max"]
Ends = Literal["joined", "multiplied"]


class GraphEncoder(Pretrained):
    """What every head stands on: a vector for each node. The config says `width`, `outputs`, `readout` and `ends`."""

    def hidden(self, graph: Graph) -> Tensor:
        """Node vectors (n, width)."""
        raise NotImplementedError


class ForVectors(GraphEncoder):
    """graph -> node vectors (n, width)"""

    def forward(self, graph: Graph) -> Tensor:
        return self.hidden(graph)


class ForNodes(GraphEncoder):
    """graph -> (n, outputs)"""

    def __init__(self, config: object):
        super().__init__(config)
        c = self.config
        self.head = NodeHead(make_perceptron(c.width, c.width, c.outputs))

    def forward(self, graph: Graph) -> Tensor:
        return self.head(self.hidden(graph), graph.links)


class ForGraphs(GraphEncoder):
    """graphs -> (g, outputs)"""

    def __init__(self, config: object):
        super().__init__(config)
        c = self.config
        self.head = GraphHead(READOUTS[c.readout](), make_perceptron(c.width, c.width, c.outputs))

    def forward(self, graph: Graph) -> Tensor:
        return self.head(self.hidden(graph), graph.links)


class ForEdges(GraphEncoder):
    """graph, and pairs of its nodes (m, 2) -> (m, outputs); without pairs, for each edge"""

    def __init__(self, config: object):
        super().__init__(config)
        c = self.config
        ends, times = ENDS[c.ends]
        self.head = EdgeHead(ends(), make_perceptron(times * c.width, c.width, c.outputs))

    def forward(self, graph: Graph, pairs: Tensor | None = None) -> Tensor:
        return self.head(self.hidden(graph), graph.links, pairs)


def check_names(config: object) -> None:
    """Readout and ends, by their names."""
    for field, known in (("readout", READOUTS), ("ends", ENDS)):
        name = getattr(config, field)
        if name not in known:
            raise ValueError(f"{field} {name!r} is unknown; known: {', '.join(known)}")


def make_two_graphs(inputs: int) -> Graph:
    """A path of four nodes, and a triangle with a node alone."""
    edges = torch.tensor([(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 4)])
    owner = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    nodes = torch.randn(8, inputs, generator=torch.Generator().manual_seed(0))
    return build_graph(nodes, torch.cat([edges, edges.flip(1)]), owner=owner, graphs=2)
