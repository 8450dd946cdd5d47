"""GAT: the published network beside PyTorch Geometric's, and the attention that a report draws."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F
from torch_geometric.nn import GATConv

from descend.models import load
from descend.models.gat import ARCHITECTURES, TINY, TINY_INPUT, GATForEdges, GATForGraphs, GATForNodes
from descend.ops.graph.aggregate import sum_groups
from tests.close import close
from tests.nn.graph.cases import list_edges, some_graph

pytestmark = pytest.mark.system("gat")


@pytest.mark.system("gat", "attention")
def test_published_network() -> None:
    """elu between the layers, heads end to end, and averaged in the last."""
    graph, c = some_graph(nodes=TINY.inputs), TINY
    model = GATForNodes(c).double()
    peers = [
        GATConv(c.inputs, c.width // c.heads, heads=c.heads).double(),
        GATConv(c.width, c.outputs, heads=c.last_heads, concat=False).double(),
    ]
    mine, theirs = [], []
    with torch.no_grad():
        for layer, peer in zip(model.layers, peers, strict=True):
            torch.nn.init.normal_(layer.bias)
            mine += [layer.linear.weight, layer.score.source, layer.score.target, layer.bias]
            theirs += [peer.lin.weight, peer.att_src, peer.att_dst, peer.bias]
        for a, b in zip(mine, theirs, strict=True):
            b.copy_(a.view_as(b))
    edges = list_edges(graph.links)
    expected = peers[1](F.elu(peers[0](graph.nodes, edges)), edges)
    close(model(graph), expected)
    target = torch.arange(graph.links.n) % c.outputs
    found = torch.autograd.grad(F.cross_entropy(model(graph), target), mine)
    for a, b in zip(found, torch.autograd.grad(F.cross_entropy(expected, target), theirs), strict=True):
        close(a, b.view_as(a))


@pytest.mark.system("gat", "attention", "normaliser")
def test_attention_of_every_layer() -> None:
    graph, model = TINY_INPUT(), GATForNodes(TINY)
    first, last = model.attention(graph)
    assert first.shape == (graph.links.e + graph.links.n, TINY.heads)
    assert last.shape == (graph.links.e + graph.links.n, TINY.last_heads)
    for share in (first, last):
        close(sum_groups(share, graph.links.looped.target, graph.links.n), torch.ones(graph.links.n, share.shape[1]))
        assert not share.requires_grad


@pytest.mark.system("gat", "scoring")
@pytest.mark.parametrize("score", ["additive", "dot", "network"])
def test_scores_and_dropout(score: str) -> None:
    graph, config = TINY_INPUT(), replace(TINY, score=score, dropout=0.3, attention_dropout=0.3)
    model = GATForNodes(config)
    torch.manual_seed(0)
    first, second = model(graph), model(graph)
    assert (first - second).abs().max() > 1e-3
    torch.manual_seed(0)
    assert torch.equal(model(graph), first)
    assert torch.equal(model.eval()(graph), model(graph))
    model(graph).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_three_levels_and_mistakes(tmp_path: Path) -> None:
    graph = TINY_INPUT()
    assert GATForEdges(TINY)(graph, torch.tensor([(0, 5)])).shape == (1, TINY.outputs)
    assert GATForGraphs(TINY)(graph).shape == (2, TINY.outputs)
    for name, kind in ARCHITECTURES.items():
        model = kind(TINY).eval()
        model.save_pretrained(tmp_path / name)
        again = load(tmp_path / name)
        assert type(again) is kind
        assert torch.equal(again(graph), model(graph))
    with pytest.raises(ValueError, match="width 7 cannot be shared by 2 heads"):
        replace(TINY, width=7)
    with pytest.raises(ValueError, match="score 'cosine' is unknown"):
        replace(TINY, score="cosine")
