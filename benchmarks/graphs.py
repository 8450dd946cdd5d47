"""Training on graphs beside PyTorch Geometric: Cora by GCN and GAT, and a GCN on a thousand to a million edges.

A step is forward, backward and Adam on the whole graph. Ours is the engine's, which `descend train` takes; theirs
is a plain loop with the same fused optimizer, dense features and a cached normalization where their layer offers
it. CORA in the environment names a folder of Planetoid's files; without it a random graph of the same shape is
taken: 2,708 nodes, 10,556 edges, 1,433 features of which 1.27% are not 0."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.steps import engine, plain
from benchmarks.turns import take_turns

Batch = dict[str, Tensor]
BARS = {"gcn": 15.0, "gat": 5.0}
NAMES = {"gcn": "GCN of 16 units", "gat": "GAT of 8 heads with 8 units"}
EDGES = (10**3, 10**4, 10**5, 10**6)
DEGREE, FEATURES, WIDTH, CLASSES = 10, 32, 16, 7


def pack(nodes: Tensor, edges: Tensor, y: Tensor, taught: int) -> Batch:
    """One graph as a batch, whose first nodes have classes."""
    labels = torch.where(torch.arange(len(y)) < taught, y, -1)
    zeros = lambda n: torch.zeros(n, dtype=torch.long)
    return {
        "ids": zeros(1), "nodes": nodes, "nodes_owner": zeros(len(nodes)), "edges": edges,
        "edges_owner": zeros(len(edges)), "y": labels, "y_owner": zeros(len(y)),
    }  # fmt: skip


def cora() -> Batch:
    """Planetoid's files, or what is like them."""
    if folder := os.environ.get("CORA"):
        from descend.data.graphs.planetoid import find_planetoid, read_planetoid

        stem = find_planetoid(folder)
        assert stem is not None
        found = read_planetoid(stem)
        x = found.graph.nodes
        return pack(x / x.sum(1, keepdim=True).clamp_min(1), found.graph.edges, found.y, 140)
    random = torch.Generator().manual_seed(0)
    x = (torch.rand(2708, 1433, generator=random) < 0.0127).float()
    half = torch.randint(2708, (5278, 2), generator=random)
    edges, y = torch.cat([half, half.flip(1)]), torch.randint(7, (2708,), generator=random)
    return pack(x / x.sum(1, keepdim=True).clamp_min(1), edges, y, 140)


def random_graph(edges: int) -> Batch:
    """Ten edges a node, dense features, and half of the nodes have classes."""
    random, n = torch.Generator().manual_seed(0), edges // DEGREE
    half = torch.randint(n, (edges // 2, 2), generator=random)
    y = torch.randint(CLASSES, (n,), generator=random)
    return pack(torch.randn(n, FEATURES, generator=random), torch.cat([half, half.flip(1)]), y, n // 2)


def step_ours(model: nn.Module, batch: Batch) -> Callable[[], object]:
    """The engine's."""
    from descend.tasks.classify_nodes import ClassifyNodes

    return engine(ClassifyNodes(model), batch)


def step_theirs(model: nn.Module, batch: Batch) -> Callable[[], object]:
    """A plain loop."""
    x, edges, known = batch["nodes"], batch["edges"].t().contiguous(), batch["y"] >= 0
    y = batch["y"][known]
    return plain(model, lambda run: F.cross_entropy(run(x, edges)[known], y))


class PygGCN(nn.Module):
    """As in their examples, without a bias."""

    def __init__(self, inputs: int, width: int, classes: int, dropout: float):
        super().__init__()
        from torch_geometric.nn import GCNConv  # type: ignore[import-untyped]

        self.first = GCNConv(inputs, width, bias=False, cached=True)
        self.last = GCNConv(width, classes, bias=False, cached=True)
        self.dropout = dropout

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        x = self.first(F.dropout(x, self.dropout, self.training), edges).relu()
        return self.last(F.dropout(x, self.dropout, self.training), edges)


class PygGAT(nn.Module):
    """As in their examples."""

    def __init__(self) -> None:
        super().__init__()
        from torch_geometric.nn import GATConv

        self.first = GATConv(1433, 8, heads=8, dropout=0.6)
        self.last = GATConv(64, 7, heads=1, concat=False, dropout=0.6)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        x = F.elu(self.first(F.dropout(x, 0.6, self.training), edges))
        return self.last(F.dropout(x, 0.6, self.training), edges)


def gcn() -> Callable[[], object]:
    from descend.models.gcn import GCNConfig, GCNForNodes

    return step_ours(GCNForNodes(GCNConfig()), cora())


def gcn_pyg() -> Callable[[], object]:
    return step_theirs(PygGCN(1433, 16, 7, 0.5), cora())


def gat() -> Callable[[], object]:
    from descend.models.gat import GATConfig, GATForNodes

    return step_ours(GATForNodes(GATConfig()), cora())


def gat_pyg() -> Callable[[], object]:
    return step_theirs(PygGAT(), cora())


def ours_of(edges: int) -> Callable[[], object]:
    """A plain loop, as theirs."""
    from descend.models.gcn import GCNConfig, GCNForNodes
    from descend.ops.graph.batches import read_graph

    config = GCNConfig(inputs=FEATURES, width=WIDTH, outputs=CLASSES, dropout=0.0)
    model, batch = GCNForNodes(config), random_graph(edges)
    graph, known = read_graph(batch), batch["y"] >= 0
    y = batch["y"][known]
    return plain(model, lambda run: F.cross_entropy(run(graph)[known], y))


def theirs_of(edges: int) -> Callable[[], object]:
    return step_theirs(PygGCN(FEATURES, WIDTH, CLASSES, 0.0), random_graph(edges))


def edges_1000() -> Callable[[], object]:
    return ours_of(1000)


def edges_1000_pyg() -> Callable[[], object]:
    return theirs_of(1000)


def edges_10000() -> Callable[[], object]:
    return ours_of(10_000)


def edges_10000_pyg() -> Callable[[], object]:
    return theirs_of(10_000)


def edges_100000() -> Callable[[], object]:
    return ours_of(100_000)


def edges_100000_pyg() -> Callable[[], object]:
    return theirs_of(100_000)


def edges_1000000() -> Callable[[], object]:
    return ours_of(1_000_000)


def edges_1000000_pyg() -> Callable[[], object]:
    return theirs_of(1_000_000)


def compare(name: str, turns: int, calls: int) -> tuple[float, float]:
    """Milliseconds of both, best call."""
    targets = {who: f"benchmarks.graphs:{name}{who}" for who in ("", "_pyg")}
    best = {who: 1e3 * min(times) for who, times in take_turns(targets, turns, calls)[0].items()}
    return best[""], best["_pyg"]


def measure(turns: int = 7, calls: int = 9) -> list[dict[str, Any]]:
    """Milliseconds of a step, best call, and what a step costs for each edge."""
    rows: list[dict[str, Any]] = []
    where = "Cora" if os.environ.get("CORA") else "a random graph of Cora's shape"
    for name, bar in BARS.items():
        ours, theirs = compare(name, turns, calls)
        rows.append({
            "name": f"{NAMES[name]}: training step on {where}", "ours": ours, "theirs": theirs, "unit": "ms",
            "ratio": theirs / ours, "bar": bar, "note": "PyTorch Geometric; dropout on features; fused Adam",
        })  # fmt: skip
    cost = {}
    for edges in EDGES:
        ours, theirs = compare(f"edges_{edges}", 5, 5)
        cost[edges] = ours
        rows.append({
            "name": f"GCN of 16 units: training step on {edges:,} edges", "ours": ours, "theirs": theirs, "unit": "ms",
            "ratio": theirs / ours, "bar": 1.0 if edges > 1000 else 0.5,
            "note": f"plain loops; {1e6 * ours / edges:,.0f} ns an edge; {edges // DEGREE:,} nodes of {FEATURES}",
        })  # fmt: skip
    grown = cost[10**6] / cost[10**4]
    rows.append({
        "name": "GCN of 16 units: a hundred times the edges", "ours": grown, "theirs": 100.0, "unit": "times the cost",
        "ratio": 100 / grown, "bar": 0.5, "note": "10⁴ to 10⁶ edges; linear is 100; caches end on the way",
    })  # fmt: skip
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
