"""Learned filters against PyG's ChebConv and dense polynomials."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from torch_geometric.nn import ChebConv

from descend.nn.graph.polynomial import ChebyshevFilter, PolynomialFilter, SharedFilter
from descend.ops.graph.laplacian import Build, iterate_power, laplacian, largest_eigenvalues, symmetric_laplacian
from descend.ops.graph.structure import Links
from tests.close import close
from tests.ops.graph.graphs import join, links_of, permuted

F64 = torch.float64


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(0), requires_grad=True)


def edge_index(links: Links) -> torch.Tensor:
    return torch.stack([links.source, links.target])


@pytest.mark.system("chebnet")
@pytest.mark.system("chebnet", "layer")
@pytest.mark.parametrize(("build", "name"), [(symmetric_laplacian, "sym"), (laplacian, None)])
@pytest.mark.parametrize("degree", [0, 1, 2, 4])
def test_the_layer_of_pyg(build: Build, name: str | None, degree: int) -> None:
    """Values and all gradients, with the bound for λ_max and with the exact one. PyG's K counts terms."""
    torch.manual_seed(degree)
    links, x = links_of(nx.karate_club_graph()), draw(34, 3)
    theirs = ChebConv(3, 4, degree + 1, normalization=name).double()
    torch.nn.init.normal_(theirs.bias)
    exact = largest_eigenvalues(build(links, F64))
    for ours, top in (
        (ChebyshevFilter(3, 4, degree, build).double(), None),
        (ChebyshevFilter(3, 4, degree, build, largest_eigenvalues).double(), exact[0]),
        (ChebyshevFilter(3, 4, degree, build, iterate_power).double(), exact[0]),
    ):
        ours.maps.weight.data = torch.cat([lin.weight for lin in theirs.lins]).data
        ours.bias.data = theirs.bias.data
        y, wanted = ours(x, links), theirs(x, edge_index(links), lambda_max=top)
        close(y, wanted, loosen=1000)  # what the power iteration leaves
        (dx,) = torch.autograd.grad(y.square().sum(), [x], retain_graph=True)
        (into_x,) = torch.autograd.grad(wanted.square().sum(), [x], retain_graph=True)
        close(dx, into_x, loosen=1000)
        (dw,) = torch.autograd.grad(y.square().sum(), [ours.maps.weight])
        close(dw, torch.cat(torch.autograd.grad(wanted.square().sum(), [lin.weight for lin in theirs.lins])), 1000)


@pytest.mark.system("chebnet", "layer")
def test_a_batch_is_what_each_graph_gives_alone() -> None:
    """Each with its own λ_max; PyG's default takes the largest of the batch for D − A."""
    graphs = [nx.karate_club_graph(), nx.path_graph(5), nx.empty_graph(2)]
    for largest in (largest_eigenvalues, iterate_power):
        layer, x = ChebyshevFilter(2, 3, 3, laplacian, largest).double(), draw(41, 2)
        parts = [layer(part, links_of(graph)) for graph, part in zip(graphs, x.split([34, 5, 2]), strict=True)]
        close(layer(x, join(graphs)), torch.cat(parts), loosen=1000)


@pytest.mark.system("polynomial-graph-filter")
@pytest.mark.system("polynomial-graph-filter", "filter")
@pytest.mark.parametrize("degree", [0, 1, 3])
@pytest.mark.parametrize("build", [laplacian, symmetric_laplacian])
def test_polynomials_are_dense_ones(build: Build, degree: int) -> None:
    links, x = links_of(nx.karate_club_graph()), draw(34, 3)
    dense = build(links, F64).dense()
    each = [torch.linalg.matrix_power(dense, i) for i in range(degree + 1)]
    layer = PolynomialFilter(3, 4, degree, build).double()
    w = layer.maps.weight.view(degree + 1, 4, 3)
    close(layer(x, links), sum(p @ x @ w[i].T for i, p in enumerate(each)))
    shared = SharedFilter(degree, build).double()
    close(shared(x, links), x)
    shared.weight.data = draw(degree + 1).data
    close(shared(x, links), sum(shared.weight[i] * (p @ x) for i, p in enumerate(each)))
    assert shared.weight.numel() == PolynomialFilter(1, 1, degree, bias=False).maps.weight.numel() == degree + 1


@pytest.mark.system("polynomial-graph-filter", "locality")
@pytest.mark.parametrize("layer", [PolynomialFilter(1, 1, 3), ChebyshevFilter(1, 1, 3), SharedFilter(3)], ids=repr)
def test_gradients_reach_as_many_hops_as_the_degree(layer: torch.nn.Module) -> None:
    torch.manual_seed(0)
    for p in layer.parameters():
        torch.nn.init.normal_(p)
    x = torch.ones(9, 1, requires_grad=True)
    (dx,) = torch.autograd.grad(layer(x, links_of(nx.path_graph(9)))[0].sum(), [x])
    assert dx[:4].all()
    assert not dx[4:].any()


@pytest.mark.system("chebnet", "equivariance")
@pytest.mark.parametrize("kind", [PolynomialFilter, ChebyshevFilter])
def test_another_order_of_nodes(kind: type[PolynomialFilter]) -> None:
    links, x, to = links_of(nx.karate_club_graph()), draw(34, 3), torch.randperm(34)
    layer, moved = kind(3, 2, 3).double(), torch.empty(34, 3, dtype=F64)
    moved[to] = x.detach()
    close(layer(moved, permuted(links, to))[to], layer(x, links))
