"""What nodes hear: along the edge list as by the dense matrix, in any order, and equal to PyTorch Geometric's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch_geometric.utils import scatter, softmax

from descend.ops.graph import aggregate
from descend.ops.graph.aggregate import (
    attend,
    max_groups,
    max_neighbours,
    mean_groups,
    mean_neighbours,
    softmax_groups,
    sum_groups,
    sum_neighbours,
    take_sources,
)
from descend.ops.graph.structure import Links
from tests.close import close
from tests.ops.graph.graphs import join, permuted, some_graphs

AGGREGATIONS: dict[str, Callable[[Tensor, Links], Tensor]] = {
    "sum": sum_neighbours,
    "mean": mean_neighbours,
    "max": max_neighbours,
}


def values(links: Links, width: int = 5) -> Tensor:
    return torch.randn(links.n, width, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def dense(name: str, a: Tensor, x: Tensor) -> Tensor:
    """By the adjacency matrix, with nodes that hear nothing."""
    if name == "max":
        top = x.expand(len(a), -1, -1).masked_fill(a.eq(0)[..., None], -torch.inf).amax(dim=1)
        return torch.where(top.isinf(), 0.0, top)
    return a.double() @ x / (a.sum(1).clamp_min(1)[:, None] if name == "mean" else 1)


@pytest.mark.system("message-passing", "aggregations")
@pytest.mark.system("message-passing")
@pytest.mark.system("graph-data-structure", "sparse-dense")
@pytest.mark.parametrize("name", AGGREGATIONS)
def test_edge_list_and_matrix(name: str) -> None:
    links = join(some_graphs())
    x = values(links)
    y = AGGREGATIONS[name](x, links)
    close(y, dense(name, links.adjacency(), x))
    close(y, scatter(x[links.source], links.target, 0, links.n, reduce=name))


@pytest.mark.system("graph-data-structure", "sparse-dense")
def test_weighted_messages_and_their_slopes() -> None:
    links = join(some_graphs())
    x = values(links).requires_grad_()
    w = torch.rand(links.e, generator=torch.Generator().manual_seed(2), dtype=torch.float64).requires_grad_()
    a = torch.zeros(links.n, links.n, dtype=torch.float64).index_put((links.target, links.source), w)
    slope = values(links).flip(0)
    ours = torch.autograd.grad(sum_neighbours(x, links, w), (x, w), slope)
    for found, expected in zip(ours, torch.autograd.grad(a @ x, (x, w), slope), strict=True):
        close(found, expected)


@pytest.mark.system("node-order-equivariance")
@pytest.mark.parametrize("name", AGGREGATIONS)
def test_no_order(name: str) -> None:
    links = join(some_graphs())
    x = values(links)
    by_graph = [torch.randperm(int(n), generator=torch.Generator().manual_seed(3)) for n in links.sizes]
    first = links.sizes.cumsum(0) - links.sizes
    to = torch.cat([p + k for p, k in zip(by_graph, first, strict=True)])
    moved = torch.empty_like(x)
    moved[to] = x
    close(AGGREGATIONS[name](moved, permuted(links, to))[to], AGGREGATIONS[name](x, links))


def test_groups() -> None:
    owner, x = torch.tensor([2, 0, 2, 2]), values(join(some_graphs()))[:4]
    expected = torch.stack([x[1], torch.zeros(5, dtype=torch.float64), x[0] + x[2] + x[3]])
    close(sum_groups(x, owner, 3), expected)
    close(mean_groups(x, owner, 3), expected / torch.tensor([1.0, 1, 3], dtype=torch.float64)[:, None])
    close(max_groups(x, owner, 3)[2], x[[0, 2, 3]].amax(0))
    assert max_groups(-x.abs() - 1, owner, 3)[1].eq(0).all()
    close(softmax_groups(x, owner, 3), softmax(x, owner, num_nodes=3))
    far = softmax_groups(torch.tensor([1000.0, 0.0, 1001.0, -1e30]), owner, 3)
    close(far, torch.tensor([0.2689414, 1.0, 0.7310586, 0.0]))


@pytest.mark.parametrize("compiled", [True, False])
def test_equal_maxima_share_the_slope(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(aggregate.native, "usable", lambda *x: False)
    x = torch.tensor([[0.0], [0.0], [-1.0], [5.0]], requires_grad=True)
    links = Links(torch.tensor([0, 1, 2]), torch.tensor([3, 3, 3]), torch.zeros(4, dtype=torch.long), 1)
    max_neighbours(x, links)[3].backward()
    assert x.grad is not None
    assert x.grad.flatten().tolist() == [0.5, 0.5, 0.0, 0.0]


def test_attention_is_a_softmax_and_a_sum() -> None:
    links = join(some_graphs())
    random = torch.Generator().manual_seed(4)
    z = torch.randn(links.e, 2, generator=random, dtype=torch.float64)
    h = torch.randn(links.n, 2, 3, generator=random, dtype=torch.float64)
    y, share = attend(z, h, links)
    expected = softmax(z, links.target, num_nodes=links.n)
    close(share, expected)
    close(y, sum_groups(expected[..., None] * take_sources(h, links), links.target, links.n))
    half, _ = attend(z, h, links, torch.full_like(z, 0.5))
    close(half, y / 2)


def test_numbers_of_half_precision() -> None:
    links = join(some_graphs())
    x = values(links).bfloat16()
    assert sum_neighbours(x, links).dtype == torch.bfloat16
    for aggregate_neighbours in AGGREGATIONS.values():  # rounded once or twice, by 0.2% on average
        close(aggregate_neighbours(x, links), aggregate_neighbours(x.double(), links), loosen=0.2)
