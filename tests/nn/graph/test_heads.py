"""One trunk and three heads; readouts and predictions from attributes that lie elsewhere."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.nn.graph.convolution import KipfConvolution
from descend.nn.graph.heads import EdgeHead, GraphHead, JoinedEnds, MultipliedEnds, NodeHead, make_perceptron
from descend.nn.graph.pooled import EdgesFromNodes, GraphsFromNodes, NodesFromEdges
from descend.nn.graph.readouts import READOUTS
from tests.close import close
from tests.nn.graph.cases import some_graph

D, W, C = 5, 6, 3


@pytest.mark.system("graph-task-levels")
@pytest.mark.system("graph-task-levels", "heads")
def test_one_trunk_and_three_heads() -> None:
    graph = some_graph()
    h = KipfConvolution(D, W).double()(graph.nodes, graph.links)
    predict = make_perceptron(W, W, C).double()
    assert NodeHead(predict)(h, graph.links).shape == (graph.links.n, C)
    assert GraphHead(READOUTS["mean"](), predict)(h, graph.links).shape == (graph.links.graphs, C)
    assert EdgeHead(MultipliedEnds(), predict)(h, graph.links).shape == (graph.links.e, C)
    pairs = torch.tensor([(0, 3), (5, 5), (3, 0)])
    y = EdgeHead(MultipliedEnds(), predict)(h, graph.links, pairs)
    close(y, predict(torch.stack([h[0] * h[3], h[5] * h[5], h[3] * h[0]])))
    joined = EdgeHead(JoinedEnds(), nn.Linear(2 * W, C).double())
    y = joined(h, graph.links, pairs)
    close(y[0], joined.predict(torch.cat([h[0], h[3]])))
    assert (y[0] - y[2]).abs().max() > 1e-3  # this one knows a direction


@pytest.mark.system("attribute-pooling-and-readout")
@pytest.mark.system("attribute-pooling-and-readout", "readouts")
@pytest.mark.parametrize("name", READOUTS)
def test_readouts_graph_by_graph(name: str) -> None:
    graph = some_graph()
    found = READOUTS[name]()(graph.nodes, graph.links)
    by_hand = {"sum": lambda x: x.sum(0), "mean": lambda x: x.mean(0), "max": lambda x: x.amax(0)}[name]
    parts = graph.nodes.split(graph.links.sizes.tolist())
    close(found, torch.stack([by_hand(x) for x in parts]))
    close(found, torch.stack([by_hand(x.flip(0)) for x in parts]))


@pytest.mark.system("attribute-pooling-and-readout", "predictions")
def test_predictions_from_elsewhere() -> None:
    """Nodes have nothing but their edges, and so on; each is learned in a few steps, which shows that it can be."""
    graph = some_graph()
    links = graph.links
    truth = {
        "nodes": torch.stack([graph.edges[links.target == v].sum(0) for v in range(links.n)])[:, :1].sin(),
        "edges": (graph.nodes[links.source] + graph.nodes[links.target])[:, :1].sin(),
        "graphs": torch.stack([graph.nodes[links.owner == g].sum(0) for g in range(links.graphs)])[:, :1].sin(),
    }
    torch.manual_seed(0)
    models = {
        "nodes": NodesFromEdges(make_perceptron(4, 16, 1)),
        "edges": EdgesFromNodes(make_perceptron(D, 16, 1)),
        "graphs": GraphsFromNodes(READOUTS["sum"](), make_perceptron(D, 16, 1)),
    }
    for name, model in models.items():
        optim = torch.optim.Adam(model.double().parameters(), lr=0.02)
        losses = []
        for _ in range(150):
            loss = (model(graph) - truth[name]).square().mean()
            optim.zero_grad()
            loss.backward()
            optim.step()
            losses.append(loss.item())
        assert model(graph).shape == truth[name].shape
        assert losses[-1] < 0.3 * truth[name].var().item(), name
