"""The three forms of graph convolution beside PyTorch Geometric's, dense matrices, and the spectrum of the third."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GraphConv, SAGEConv

from descend.nn.graph.convolution import KipfConvolution, MeanConvolution, SymmetricConvolution
from descend.ops.graph.structure import Links
from tests.close import close
from tests.ops.graph.graphs import join, links_of, some_graphs

pytestmark = pytest.mark.system("gcn")
D, OUT = 5, 4


def case() -> tuple[Links, Tensor]:
    """Several graphs, some nodes without neighbours."""
    links = join(some_graphs())
    return links, torch.randn(links.n, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def edges(links: Links) -> Tensor:
    return torch.stack([links.source, links.target])


def same_slopes(ours: Tensor, theirs: Tensor, pairs: list[tuple[Tensor, Tensor]]) -> None:
    """The gradients of one sum of both."""
    weights = torch.linspace(-1, 2, ours.numel(), dtype=ours.dtype).view_as(ours)
    close(ours, theirs)
    found = torch.autograd.grad((ours * weights).sum(), [a for a, _ in pairs])
    expected = torch.autograd.grad((theirs * weights).sum(), [b for _, b in pairs])
    for a, b in zip(found, expected, strict=True):
        close(a, b)


@pytest.mark.system("gcn", "mean-form")
def test_mean() -> None:
    """D⁻¹ A H Wᵀ + H Bᵀ, which PyTorch Geometric has as the mean form of another layer."""
    links, x = case()
    layer, peer = MeanConvolution(D, OUT).double(), SAGEConv(D, OUT, aggr="mean", bias=False).double()
    w, b = layer.neighbours.weight, layer.own.weight
    with torch.no_grad():
        peer.lin_l.weight.copy_(w)
        peer.lin_r.weight.copy_(b)
    ours, theirs = layer(x, links), peer(x, edges(links))
    same_slopes(ours, theirs, [(w, peer.lin_l.weight), (b, peer.lin_r.weight)])
    a = links.adjacency().double()
    mean = a / a.sum(1, keepdim=True).clamp_min(1)
    close(ours, mean @ x @ w.t() + x @ b.t())
    alone = links.degree == 0
    assert alone.sum() >= 2
    close(ours[alone], x[alone] @ b.t())


@pytest.mark.system("gcn", "symmetric-form")
def test_symmetric() -> None:
    links, x = case()
    layer, peer = SymmetricConvolution(D, OUT).double(), GraphConv(D, OUT, aggr="add", bias=False).double()
    w, b = layer.neighbours.weight, layer.own.weight
    with torch.no_grad():
        peer.lin_rel.weight.copy_(w)
        peer.lin_root.weight.copy_(b)
    d = links.degree.double()
    weight = (d[links.source] * d[links.target]).rsqrt()
    ours, theirs = layer(x, links), peer(x, edges(links), weight)
    same_slopes(ours, theirs, [(w, peer.lin_rel.weight), (b, peer.lin_root.weight)])
    scale = torch.diag(torch.where(d > 0, d, torch.inf).rsqrt())
    close(ours, scale @ links.adjacency().double() @ scale @ x @ w.t() + x @ b.t())
    assert torch.equal(ours[d == 0], layer.own(x)[d == 0])  # no loop


@pytest.mark.system("gcn", "kipf-form")
def test_kipf() -> None:
    links, x = case()
    layer, peer = KipfConvolution(D, OUT).double(), GCNConv(D, OUT, bias=False).double()
    with torch.no_grad():
        peer.lin.weight.copy_(layer.linear.weight)
    ours = layer(x, links)
    same_slopes(ours, peer(x, edges(links)), [(layer.linear.weight, peer.lin.weight)])
    assert [name for name, _ in layer.named_parameters()] == ["linear.weight"]  # no bias
    looped = links.adjacency().double() + torch.eye(links.n, dtype=torch.float64)
    scale = torch.diag(looped.sum(1).rsqrt())
    close(ours, scale @ looped @ scale @ x @ layer.linear.weight.t())


@pytest.mark.system("gcn", "kipf-form")
def test_spectrum() -> None:
    """The eigenvalues of Â lie in (−1, 1]; 1 is there once for each component."""
    for graph in some_graphs():
        links = links_of(graph)
        a = torch.zeros(links.n, links.n, dtype=torch.float64)
        a[links.looped.target, links.looped.source] = links.looped.balance
        values = torch.linalg.eigvalsh(a)
        assert values.min() > -1
        close(values.max(), torch.tensor(1.0, dtype=torch.float64))


@pytest.mark.parametrize("kind", [KipfConvolution, MeanConvolution, SymmetricConvolution])
def test_gradients_by_differences(kind: type[nn.Module]) -> None:
    links, x = case()
    links = Links(links.source[:40], links.target[:40], links.owner, links.graphs)  # directed
    layer = kind(D, 2).double()
    assert torch.autograd.gradcheck(lambda x: layer(x, links), (x.requires_grad_(),))
