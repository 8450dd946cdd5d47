"""Facts about graphs before training: sizes, degrees, classes, how alike neighbours are, leaks, and what is odd."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from descend.data.graphs.attributed import AttributedGraph, Graphs
from descend.data.graphs.links import LinkSplits, is_among, key_pairs
from descend.data.graphs.node_graph import NodeGraph
from descend.data.graphs.statistics import measure_graphs
from descend.ops.graph.batches import number_through

SHOWN = 12  # classes that are listed one by one


def describe_graph(graph: AttributedGraph) -> dict[str, Any]:
    """Nodes, edges, degrees, isolated nodes."""
    found = measure_graphs([graph])
    directed = "directed" if graph.directed else "undirected"
    facts: dict[str, Any] = {
        "nodes": found.nodes,
        "edges": f"{found.edges:,} {directed}",
        "degree": f"{found.least} to {found.most:,}, mean {found.mean:.3g}",
    }
    return facts | ({"isolated nodes": found.isolated} if found.isolated else {})


def describe_nodes(source: NodeGraph, parts: dict[str, Tensor]) -> dict[str, Any]:
    """All of it for nodes with classes."""
    facts = describe_graph(source.graph)
    y, edges = source.y, source.graph.edges
    facts["nodes per class"] = count_classes(y[y >= 0], source.labels)
    known = (y[edges] >= 0).all(dim=1)
    if bool(known.any()):
        alike = (y[edges[:, 0]] == y[edges[:, 1]])[known].double().mean()
        facts["edges within a class"] = f"{float(alike):.0%}"
    if without := int((y < 0).sum()):
        facts["nodes without a class"] = without
    taught = set(y[parts["train"]].tolist())
    if never := [name for k, name in enumerate(source.labels) if k not in taught]:
        facts["classes without a training node"] = ", ".join(never)
    return facts | source.notes.facts()


def describe_graphs(graphs: Graphs, labels: tuple[str, ...], names: tuple[str, ...]) -> dict[str, Any]:
    """All of it for many graphs with classes or numbers."""
    arrays = graphs.arrays
    n, e = (torch.bincount(arrays[part], minlength=len(graphs)) for part in ("nodes_owner", "edges_owner"))
    whole = number_through(arrays["edges"], arrays["edges_owner"], arrays["nodes_owner"], len(graphs))
    degree = whole.degree
    facts: dict[str, Any] = {
        "nodes in a graph": f"{int(n.min())} to {int(n.max()):,}, mean {float(n.double().mean()):.3g}",
        "edges in a graph": f"{int(e.min())} to {int(e.max()):,}, mean {float(e.double().mean()):.3g}, both ways",
        "degree": f"{int(degree.min())} to {int(degree.max()):,}, mean {float(degree.double().mean()):.3g}",
    }
    if labels:
        return facts | {"graphs per class": count_classes(graphs.y, labels)}
    for k, name in enumerate(names):
        y = graphs.y[:, k].double()
        facts[name] = f"{float(y.min()):.4g} to {float(y.max()):.4g}, mean {float(y.mean()):.4g}"
    return facts


def describe_links(splits: LinkSplits, whole: AttributedGraph) -> dict[str, Any]:
    """All of it for links: and the nodes that training leaves without one."""
    facts = describe_graph(whole)
    facts["training links"] = len(splits.train)
    facts["held-out links"] = f"{len(splits.valid.positive):,} valid, {len(splits.test.positive):,} test"
    if lost := measure_graphs([splits.graph]).isolated - measure_graphs([whole]).isolated:
        facts["nodes with held-out links only"] = lost
    n, directed = len(whole), whole.directed
    taught = key_pairs(splits.train, n, directed).sort().values
    for part, pairs in (("valid", splits.valid.positive), ("test", splits.test.positive)):
        if leaks := int(is_among(key_pairs(pairs, n, directed), taught).sum()):
            facts["in training too"] = f"{leaks:,} of {len(pairs):,} {part} links"
    return facts


def count_classes(y: Tensor, labels: tuple[str, ...]) -> str:
    """How many of each class."""
    counts = torch.bincount(y, minlength=len(labels)).tolist()
    if len(labels) <= SHOWN:
        return ", ".join(f"{name} {count:,}" for name, count in zip(labels, counts, strict=True))
    order = sorted(range(len(labels)), key=lambda k: counts[k])
    least, most = order[0], order[-1]
    return f"{len(labels)}, from {counts[least]:,} ({labels[least]}) to {counts[most]:,} ({labels[most]})"
