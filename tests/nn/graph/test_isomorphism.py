"""GIN's layer beside PyTorch Geometric's, ε fixed and learned, and why its network has two layers."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch_geometric.nn import GINConv

from descend.nn.graph.heads import make_perceptron
from descend.nn.graph.isomorphism import FixedEpsilon, IsomorphismLayer, LearnedEpsilon, make_injective
from descend.ops.graph.structure import Links
from tests.close import close
from tests.nn.graph.cases import list_edges, some_graph

pytestmark = pytest.mark.system("gin")
D, OUT = 5, 4


@pytest.mark.system("gin", "epsilon")
@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_beside_theirs(learned: bool, epsilon: float) -> None:
    graph, f = some_graph(), make_injective(D, 6, OUT)
    layer = IsomorphismLayer(f, (LearnedEpsilon if learned else FixedEpsilon)(epsilon)).double()
    peer = GINConv(f, eps=epsilon, train_eps=learned).double()
    y, expected = layer(graph.nodes, graph.links), peer(graph.nodes, list_edges(graph.links))
    close(y, expected)
    assert len(list(layer.parameters())) == len(list(f.parameters())) + learned
    if learned:
        slope = lambda y, eps: torch.autograd.grad((y * y.detach().sin()).sum(), eps)[0]
        close(slope(y, layer.epsilon.value), slope(expected, peer.eps).view(()))


@pytest.mark.system("gin", "mlp")
def test_one_layer_does_not_separate_what_two_do() -> None:
    """The multisets {4, 5} and {9}: Σ relu(W x) is relu(9 W) for both, whatever W is; two layers tell them apart."""
    sums = torch.tensor([[4.0], [5.0]], dtype=torch.float64), torch.tensor([[9.0]], dtype=torch.float64)
    apart = lambda f: (f(sums[0]).sum(0) - f(sums[1]).sum(0)).abs().max().item()
    for seed in range(20):
        torch.manual_seed(seed)
        assert apart(nn.Sequential(nn.Linear(1, 8, bias=False), nn.ReLU()).double()) < 1e-12
    torch.manual_seed(0)
    assert apart(make_perceptron(1, 8, 3).double()) > 0.01


def test_gradients_by_differences() -> None:
    graph = some_graph()
    links = Links(graph.links.source[:40], graph.links.target[:40], graph.links.owner, graph.links.graphs)
    layer = IsomorphismLayer(nn.Sequential(nn.Linear(D, 3), nn.Tanh()), LearnedEpsilon(0.1)).double()
    assert torch.autograd.gradcheck(lambda x: layer(x, links), (graph.nodes.clone().requires_grad_(),))
