"""Graph attention beside PyTorch Geometric's; its weights, its forms of scores, and what it is without learning."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch_geometric.nn import GATConv

from descend.nn.graph.attention import AdditiveScore, DotScore, GraphAttention, HeadMean, NetworkScore
from descend.nn.graph.heads import make_perceptron
from descend.ops.graph.aggregate import mean_neighbours, sum_groups
from tests.close import close
from tests.nn.graph.cases import list_edges, some_graph

pytestmark = pytest.mark.system("gat")
D, C = 5, 4


@pytest.mark.system("gat", "attention")
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("concat", [True, False])
def test_published_form(heads: int, concat: bool) -> None:
    graph = some_graph()
    layer = GraphAttention(D, heads, C, AdditiveScore(heads, C), nn.Flatten(1) if concat else HeadMean()).double()
    peer = GATConv(D, C, heads=heads, concat=concat).double()
    pairs = {
        peer.lin.weight: layer.linear.weight, peer.att_src: layer.score.source, peer.att_dst: layer.score.target,
        peer.bias: layer.bias,
    }  # fmt: skip
    with torch.no_grad():
        layer.bias.copy_(torch.linspace(-1, 1, len(layer.bias)))
        for theirs, ours in pairs.items():
            theirs.copy_(ours.view_as(theirs))
    y, share = layer.attend(graph.nodes, graph.links)
    expected, (edges, weights) = peer(graph.nodes, list_edges(graph.links), return_attention_weights=True)
    close(y, expected)
    looped = graph.links.looped
    assert torch.equal(edges, list_edges(looped))  # theirs has the loops behind the edges, too
    close(share, weights)
    slope = torch.linspace(-1, 2, y.numel(), dtype=y.dtype).view_as(y)
    found = torch.autograd.grad((y * slope).sum(), list(pairs.values()))
    for ours, theirs in zip(found, torch.autograd.grad((expected * slope).sum(), list(pairs)), strict=True):
        close(ours, theirs.view_as(ours))


@pytest.mark.system("gat", "normaliser", "attention")
@pytest.mark.parametrize("score", [AdditiveScore(2, C), DotScore(), NetworkScore(make_perceptron(2 * C, 3, 1))])
def test_shares_sum_to_one_over_the_neighbours_and_the_node(score: nn.Module) -> None:
    graph = some_graph()
    layer = GraphAttention(D, 2, C, score, nn.Flatten(1)).double()
    y, share = layer.attend(graph.nodes, graph.links)
    assert y.shape == (graph.links.n, 2 * C)
    assert share.shape == (graph.links.e + graph.links.n, 2)
    assert (share > 0).all()
    close(sum_groups(share, graph.links.looped.target, graph.links.n), torch.ones(graph.links.n, 2).double())
    alone = graph.links.degree == 0
    close(y[alone], layer.linear(graph.nodes[alone]))  # a node without neighbours hears itself


@pytest.mark.system("gat", "mean")
def test_equal_scores_make_the_mean() -> None:
    graph = some_graph()
    layer = GraphAttention(D, 2, C, AdditiveScore(2, C), nn.Flatten(1)).double()
    for a in layer.score.parameters():
        nn.init.zeros_(a)
    close(layer(graph.nodes, graph.links), mean_neighbours(layer.linear(graph.nodes), graph.links.looped))


@pytest.mark.system("gat", "scoring")
def test_scores_as_they_are_written() -> None:
    graph = some_graph()
    links, h = graph.links, graph.nodes.view(-1, 1, D).expand(-1, 2, -1).contiguous()
    here, there = h[links.target], h[links.source]
    close(DotScore()(h, links), (here * there).sum(-1) / D**0.5)
    network = NetworkScore(make_perceptron(2 * D, 3, 1)).double()
    close(network(h, links), network.network(torch.cat([here, there], -1)).squeeze(-1))
    additive = AdditiveScore(2, D, slope=0.3).double()
    z = torch.cat([here, there], -1) * torch.cat([additive.target, additive.source], -1)
    close(additive(h, links), nn.functional.leaky_relu(z.sum(-1), 0.3))


@pytest.mark.system("gat", "attention")
def test_dropout_of_shares() -> None:
    """In training a share is dropped or multiplied by 1/(1 − p); the shares that are returned are whole."""
    torch.manual_seed(0)
    graph = some_graph()
    layer = GraphAttention(D, 2, C, AdditiveScore(2, C), nn.Flatten(1), attention_dropout=0.5).double()
    still = layer.eval().attend(graph.nodes, graph.links)
    close(layer.train().attend(graph.nodes, graph.links)[1], still[1])
    draws = torch.stack([layer(graph.nodes, graph.links) for _ in range(4000)])
    gap = (draws.mean(0) - still[0]).abs() / (draws.std(0) / 4000**0.5).clamp_min(1e-12)
    assert gap.max() < 6
    torch.manual_seed(1)
    again = layer(graph.nodes, graph.links)
    torch.manual_seed(1)
    assert torch.equal(layer(graph.nodes, graph.links), again)


@pytest.mark.parametrize("score", [AdditiveScore(2, C), DotScore(), NetworkScore(make_perceptron(2 * C, 3, 1))])
def test_gradients_by_differences(score: nn.Module) -> None:
    graph = some_graph()
    layer = GraphAttention(D, 2, C, score, HeadMean()).double()
    f = lambda x: layer(torch.cat([x, graph.nodes[6:]]), graph.links)[:8]
    assert torch.autograd.gradcheck(f, (graph.nodes[:6].clone().requires_grad_(),))
