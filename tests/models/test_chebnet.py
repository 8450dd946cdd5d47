"""ChebNet against PyG's ChebConv, layer by layer, and what it learns."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from torch_geometric.nn import ChebConv

from descend.engine.minimise import minimise
from descend.losses.classification import cross_entropy
from descend.models.chebnet import ChebNetConfig, ChebNetForEdges, ChebNetForGraphs, ChebNetForNodes
from descend.ops.graph.structure import Graph
from descend.optim.rules import Adam
from tests.close import close
from tests.ops.graph.graphs import join, links_of

pytestmark = pytest.mark.system("chebnet")


def club(width: int) -> Graph:
    links = links_of(nx.karate_club_graph())
    nodes = torch.randn(34, width, generator=torch.Generator().manual_seed(0))
    return Graph(links, nodes, nodes.new_zeros(links.e, 0), nodes.new_zeros(1, 0))


@pytest.mark.system("chebnet", "layer")
def test_a_network_of_pyg_layers() -> None:
    torch.manual_seed(0)
    model = ChebNetForNodes(ChebNetConfig(inputs=5, width=8, outputs=3, depth=3, degree=2)).eval()
    graph = club(5)
    x = graph.nodes
    for i, ours in enumerate(model.layers):
        theirs = ChebConv(x.shape[1], ours.outputs, 3)
        for lin, w in zip(theirs.lins, ours.maps.weight.split(ours.outputs), strict=True):
            lin.weight.data = w.data
        x = theirs(x.relu() if i else x, torch.stack([graph.links.source, graph.links.target]))
    close(model(graph), x)


def test_three_heads_and_a_batch() -> None:
    """Graphs of a batch get what they get alone."""
    torch.manual_seed(0)
    config = ChebNetConfig(inputs=2, width=4, outputs=3, largest="exact", laplacian="none")
    graphs = [nx.path_graph(4), nx.cycle_graph(5)]
    nodes = torch.randn(9, 2)
    links = join(graphs)
    both = Graph(links, nodes, nodes.new_zeros(links.e, 0), nodes.new_zeros(2, 0))
    model = ChebNetForGraphs(config).eval()
    alone = []
    for graph, part in zip(graphs, nodes.split([4, 5]), strict=True):
        own = links_of(graph)
        alone.append(model(Graph(own, part, part.new_zeros(own.e, 0), part.new_zeros(1, 0))))
    close(model(both), torch.cat(alone))
    pairs = torch.tensor([[0, 3], [1, 2]])
    assert ChebNetForEdges(config)(both, pairs).shape == (2, 3)
    assert ChebNetForNodes(config)(both).shape == (9, 3)


def test_unknown_names_are_refused() -> None:
    for wrong in ({"laplacian": "random"}, {"largest": "guessed"}, {"readout": "median"}):
        with pytest.raises(ValueError, match="known: "):
            ChebNetConfig(**wrong)  # type: ignore[arg-type]


def test_it_learns_the_sides_of_the_club_from_few() -> None:
    graph = club(1)
    graph = graph.update(torch.eye(34))
    y = torch.tensor([int(side != "Mr. Hi") for _, side in nx.karate_club_graph().nodes(data="club")])
    known = torch.tensor([0, 33])
    torch.manual_seed(0)
    model = ChebNetForNodes(ChebNetConfig(inputs=34, width=8, outputs=2, degree=2, dropout=0.0))
    minimise(model, lambda: cross_entropy(model(graph)[known], y[known]).mean(), 100, Adam(0.02))
    model.eval()
    assert int((model(graph).argmax(1) == y).sum()) > 25
