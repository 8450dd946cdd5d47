"""GraphSAGE: layers beside PyTorch Geometric's, vectors of length 1, and nodes that were never seen."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F
from torch_geometric.nn import SAGEConv

from descend.models import load
from descend.models.graphsage import (
    ARCHITECTURES,
    TINY,
    TINY_INPUT,
    GraphSAGE,
    GraphSAGEForGraphs,
    GraphSAGEForNodes,
)
from descend.ops.graph.structure import Graph, Links
from tests.close import close
from tests.nn.graph.cases import draw, list_edges, some_graph

pytestmark = pytest.mark.system("graphsage")


@pytest.mark.system("graphsage", "mean", "normalized")
@pytest.mark.parametrize("norm", ["none", "length"])
def test_network_beside_theirs(norm: str) -> None:
    graph, c = some_graph(nodes=TINY.inputs), replace(TINY, norm=norm)
    model = GraphSAGE(c).double()
    peers = [SAGEConv(*sizes).double() for sizes in pairwise((c.inputs, c.width, c.width))]
    with torch.no_grad():
        for layer, peer in zip(model.layers, peers, strict=True):
            torch.nn.init.normal_(layer.own.bias)
            peer.lin_l.weight.copy_(layer.neighbours.linear.weight)
            peer.lin_l.bias.copy_(layer.own.bias)
            peer.lin_r.weight.copy_(layer.own.weight)
    edges, x = list_edges(graph.links), graph.nodes
    x = peers[0](x, edges).relu()
    x = peers[1](F.normalize(x, dim=1) if norm == "length" else x, edges)
    expected = F.normalize(x, dim=1) if norm == "length" else x
    close(model(graph), expected)
    if norm == "length":
        close(model(graph).norm(dim=1), torch.ones(graph.links.n).double())


@pytest.mark.parametrize("aggregator", ["mean", "inclusive", "max", "lstm"])
def test_aggregators(aggregator: str) -> None:
    graph, config = TINY_INPUT(), replace(TINY, aggregator=aggregator, dropout=0.4, depth=3)
    for kind in (GraphSAGEForNodes, GraphSAGEForGraphs):
        torch.manual_seed(0)
        model = kind(config)
        first, second = model(graph), model(graph)
        assert (first - second).abs().max() > 1e-4
        assert torch.equal(model.eval()(graph), model(graph))
        model(graph).square().sum().backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    with pytest.raises(ValueError, match="aggregator 'median' is unknown; known: mean, inclusive, max, lstm"):
        replace(config, aggregator="median")


def blocks(n: int, seed: int) -> tuple[Graph, torch.Tensor]:
    """Three groups whose members are linked more often, and features that say little of the group."""
    random = torch.Generator().manual_seed(seed)
    groups = torch.arange(n) % 3
    chance = torch.where(groups[:, None] == groups, 48 / n, 3 / n)
    there = (torch.rand(n, n, generator=random) < chance).triu(1)
    source, target = (there | there.t()).nonzero(as_tuple=True)
    links = Links(source, target, torch.zeros(n, dtype=torch.long), 1)
    x = (F.one_hot(groups, 3) + 1.2 * draw(n, 3, seed=seed)).float()
    return Graph(links, x, x.new_zeros(links.e, 0), x.new_zeros(1, 0)), groups


@pytest.mark.system("graphsage", "inductive")
@pytest.mark.parametrize(("aggregator", "least"), [("mean", 0.85), ("max", 0.75)])
def test_a_graph_never_seen(aggregator: str, least: float) -> None:
    """Trained on one graph of 150 nodes; names the groups of another one, of 400."""
    (seen, groups), (other, truth) = blocks(150, 0), blocks(400, 1)
    torch.manual_seed(0)
    model = GraphSAGEForNodes(replace(TINY, inputs=3, width=16, aggregator=aggregator))
    optim = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=1e-3)
    for _ in range(60):
        optim.zero_grad()
        F.cross_entropy(model(seen), groups).backward()
        optim.step()
    right = (model.eval()(other).argmax(1) == truth).double().mean()
    alone = (other.nodes.argmax(1) == truth).double().mean()
    assert right > least > 0.65 > alone


@pytest.mark.system("graphsage", "inductive")
def test_a_new_node_changes_only_those_near_it() -> None:
    graph, _ = blocks(60, 0)
    model = GraphSAGE(replace(TINY, inputs=3)).eval()
    owner = torch.zeros(61, dtype=torch.long)
    ends = torch.tensor([4, 60])
    links = Links(torch.cat([graph.links.source, ends]), torch.cat([graph.links.target, ends.flip(0)]), owner, 1)
    nodes = torch.cat([graph.nodes, torch.ones(1, 3)])
    more = Graph(links, nodes, nodes.new_zeros(links.e, 0), graph.context)
    before, after = model(graph), model(more)
    assert after.shape == (61, TINY.width)
    near = torch.zeros(60, dtype=torch.bool)
    near[4] = True
    near[graph.links.source[graph.links.target == 4]] = True
    close(after[:60][~near], before[~near])
    assert (after[4] - before[4]).abs().max() > 1e-3


def test_every_class_is_saved_and_loaded(tmp_path: Path) -> None:
    graph = TINY_INPUT()
    for name, kind in ARCHITECTURES.items():
        model = kind(TINY).eval()
        model.save_pretrained(tmp_path / name)
        again = load(tmp_path / name)
        assert type(again) is kind
        assert torch.equal(again(graph), model(graph))
