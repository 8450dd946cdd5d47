"""GCN: the published network beside PyTorch Geometric's, its three forms, and sizes that do not depend on the graph."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F
from torch_geometric.nn import GCNConv

from descend.models import load
from descend.models.gcn import (
    ARCHITECTURES,
    SIZES,
    TINY,
    TINY_INPUT,
    GCNConfig,
    GCNEncoder,
    GCNForEdges,
    GCNForGraphs,
    GCNForNodes,
)
from descend.nn.graph.convolution import KipfConvolution, MeanConvolution, SymmetricConvolution
from descend.ops.graph.structure import Graph, Links, build_graph
from tests.close import close
from tests.nn.graph.cases import draw, list_edges, path, reach, some_graph

pytestmark = pytest.mark.system("gcn")
FORMS = {"kipf": KipfConvolution, "mean": MeanConvolution, "symmetric": SymmetricConvolution}


@pytest.mark.system("gcn", "kipf-form")
def test_published_network() -> None:
    """Z = Â relu(Â X W_1) W_2, values and slopes."""
    graph = some_graph(nodes=TINY.inputs)
    model = GCNForNodes(TINY).double()
    first, last = (GCNConv(*sizes, bias=False).double() for sizes in pairwise((TINY.inputs, TINY.width, TINY.outputs)))
    with torch.no_grad():
        for layer, peer in zip(model.layers, (first, last), strict=True):
            peer.lin.weight.copy_(layer.linear.weight)
    edges = list_edges(graph.links)
    expected = last(first(graph.nodes, edges).relu(), edges)
    close(model(graph), expected)
    target = torch.arange(graph.links.n) % TINY.outputs
    found = torch.autograd.grad(F.cross_entropy(model(graph), target), list(model.parameters()))
    theirs = torch.autograd.grad(F.cross_entropy(expected, target), [first.lin.weight, last.lin.weight])
    for a, b in zip(found, theirs, strict=True):
        close(a, b)


@pytest.mark.parametrize("form", FORMS)
def test_forms_and_dropout(form: str) -> None:
    """Dropout before every layer, on the input too, and in training only."""
    config = replace(TINY, form=form, dropout=0.5, depth=3)
    model = GCNForNodes(config).double()
    assert all(type(layer) is FORMS[form] for layer in model.layers)
    assert [m.dropout for m in model.modules() if hasattr(m, "dropout")] == [0.5] * (3 if form == "kipf" else 6)
    graph = some_graph(nodes=TINY.inputs)
    torch.manual_seed(0)
    first, second = model(graph), model(graph)
    assert (first - second).abs().max() > 1e-3
    torch.manual_seed(0)
    assert torch.equal(model(graph), first)
    model.eval()
    x = graph.nodes
    for k, layer in enumerate(model.layers):
        x = layer(x.relu() if k else x, graph.links)
    assert torch.equal(model(graph), x)
    with pytest.raises(ValueError, match="form 'sum' is unknown; known: kipf, mean, symmetric"):
        replace(config, form="sum")
    with pytest.raises(ValueError, match="readout 'min' is unknown"):
        replace(config, readout="min")


@pytest.mark.system("graph-task-levels")
@pytest.mark.system("graph-task-levels", "heads")
def test_three_levels_on_one_trunk() -> None:
    graph = TINY_INPUT()
    torch.manual_seed(0)
    trunk = GCNEncoder(TINY)
    shapes = {GCNForEdges: (graph.links.e, 3), GCNForGraphs: (graph.links.graphs, 3)}
    for kind, shape in shapes.items():
        model = kind(TINY)
        model.layers = trunk.layers
        assert model(graph).shape == shape
        assert torch.equal(model.hidden(graph), trunk.hidden(graph))
    assert GCNForNodes(TINY)(graph).shape == (graph.links.n, 3)
    pairs = torch.tensor([(0, 1), (6, 2)])
    model = GCNForEdges(TINY)
    assert model(graph, pairs).shape == (2, 3)
    close(model(graph, pairs), model(graph, pairs.flip(1)))  # the ends are multiplied


@pytest.mark.system("graph-task-levels", "sizes")
def test_trained_on_one_graph_and_applied_to_another() -> None:
    """34 nodes or 10,000: the same parameters. Trained on a path to name the nodes with one neighbour."""
    small, large = path(34, TINY.inputs), path(10_000, TINY.inputs)
    model = GCNForNodes(replace(TINY, form="symmetric", outputs=2)).double()
    ones = [Graph(graph.links, torch.ones_like(graph.nodes), graph.edges, graph.context) for graph in (small, large)]
    truth = [(graph.links.degree == 1).long() for graph in ones]
    count = sum(p.numel() for p in model.parameters())
    optim = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(150):
        optim.zero_grad()
        F.cross_entropy(model(ones[0]), truth[0], torch.tensor([1.0, 16.0]).double()).backward()
        optim.step()
    assert torch.equal(model(ones[1]).argmax(1), truth[1])
    assert sum(p.numel() for p in model.parameters()) == count


@pytest.mark.system("message-passing", "reach")
def test_depth_is_reach() -> None:
    for depth in (1, 2, 4):
        graph = path(9, TINY.inputs)
        x = graph.nodes.requires_grad_()
        torch.manual_seed(0)
        y = GCNForNodes(replace(TINY, depth=depth, width=32)).double()(graph)
        assert reach(y[0], x) == list(range(depth + 1))


def test_every_class_is_saved_and_loaded(tmp_path: Path) -> None:
    graph = TINY_INPUT()
    for name, kind in ARCHITECTURES.items():
        model = kind(TINY).eval()
        model.save_pretrained(tmp_path / name)
        again = load(tmp_path / name)
        assert type(again) is kind
        assert torch.equal(again(graph), model(graph))


def test_words_of_papers_are_the_same_numbers() -> None:
    """Features that are mostly zeros go another way."""
    random = torch.Generator().manual_seed(0)
    x = (torch.rand(60, 1433, generator=random) < 0.013).double()
    edges = torch.randint(0, 60, (200, 2), generator=random)
    model = GCNForNodes(SIZES["gcn-cora"]).double().eval()
    sparse = model(build_graph(x, edges))
    close(sparse, model(build_graph(x.clone().requires_grad_(), edges)))
    assert sparse.shape == (60, 7)


def test_learns_a_planted_partition() -> None:
    """Four groups whose members are linked more often, few labels, features that say little: links say the rest."""
    random = torch.Generator().manual_seed(0)
    n, groups = 200, torch.arange(200) % 4
    same = groups[:, None] == groups
    there = (torch.rand(n, n, generator=random) < torch.where(same, 0.2, 0.01)).triu(1)
    source, target = (there | there.t()).nonzero(as_tuple=True)
    links = Links(source, target, torch.zeros(n, dtype=torch.long), 1)
    x = (F.one_hot(groups, 4) + 1.5 * draw(n, 4)).float()
    graph = Graph(links, x, x.new_zeros(links.e, 0), x.new_zeros(1, 0))
    torch.manual_seed(0)
    model = GCNForNodes(GCNConfig(inputs=4, outputs=4))
    optim = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    for _ in range(120):
        optim.zero_grad()
        F.cross_entropy(model(graph)[:40], groups[:40]).backward()
        optim.step()
    right = (model.eval()(graph)[40:].argmax(1) == groups[40:]).double().mean()
    alone = (x[40:].argmax(1) == groups[40:]).double().mean()
    assert right > 0.9 > 0.7 > alone
