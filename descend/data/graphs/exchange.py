"""Graphs of other libraries, both ways: networkx, scipy.sparse, and the tensors of PyG's Data and Batch.

    networkx    attributes x and label of nodes, x or weight of edges
    scipy       A_uv: the weight of the edge u → v; a symmetric matrix is an undirected graph
    PyG         x, edge_index (2, e), edge_attr, y, train_mask, val_mask, test_mask; batch of a Batch

PyG itself is needed only to make its objects.

Systems: graph-data-structure
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from descend.data.detection.annotated import Notes
from descend.data.graphs.attributed import AttributedGraph, Graphs, gather, link
from descend.data.graphs.clean import check_values, link_cleanly, note_isolated
from descend.data.graphs.node_graph import OPEN, NodeGraph, gather_parts, number_classes
from descend.data.reading import check_file, show
from descend.errors import Mistake

MOST = 10**8  # nodes of a graph
MASKS = ("train_mask", "val_mask", "test_mask")


def from_networkx(found: Any) -> NodeGraph:
    """Nodes are numbered in the graph's order; of a multigraph the first of parallel edges counts."""
    index = {node: i for i, node in enumerate(found)}
    x = stack([found.nodes[node].get("x") for node in found], "nodes")
    edges = list(found.edges(data=True))
    pairs = torch.tensor([(index[a], index[b]) for a, b, _ in edges], dtype=torch.long).view(-1, 2)
    attributes = stack([d.get("x", d.get("weight")) for _, _, d in edges], "edges")
    notes = Notes()
    place = lambda k: f"edge {edges[k][0]!r} to {edges[k][1]!r}"
    graph = link_cleanly(x, pairs, found.is_directed(), place, notes, attributes)
    note_isolated(graph, tuple(map(str, found)), notes)
    texts = [found.nodes[node].get("label") for node in found]
    y, labels = number_classes(["" if text is None else str(text) for text in texts])
    return NodeGraph(graph, y, labels, tuple(map(str, found)), notes=notes)


def stack(rows: list[Any], what: str) -> Tensor:
    """Attributes (m, k) of all, or of none."""
    given = [row is not None for row in rows]
    if not rows or not all(given):
        if any(given):
            raise Mistake(f"only {sum(given)} of {len(rows)} {what} have attributes; give all of them some, or none")
        return torch.zeros(len(rows), 0)
    try:
        found = torch.stack([torch.as_tensor(row, dtype=torch.float32).flatten() for row in rows])
    except (RuntimeError, TypeError, ValueError):
        raise Mistake(f"the attributes of {what} are no equally many numbers") from None
    check_values(found, lambda i: f"{what}, {i}", "attribute")
    return found


def to_networkx(found: NodeGraph) -> Any:
    """With attributes x and label where there are any; nodes have their numbers."""
    graph, made = found.graph, nx.DiGraph() if found.graph.directed else nx.Graph()
    for i, (x, k) in enumerate(zip(graph.nodes.tolist(), found.y.tolist(), strict=True)):
        made.add_node(i, **({"x": x} if x else {}), **({"label": found.labels[k]} if k >= 0 else {}))
    for (a, b), x in zip(graph.pairs.tolist(), graph.pair_attributes.tolist(), strict=True):
        made.add_edge(a, b, **({"x": x} if x else {}))
    return made


def from_scipy(matrix: Any, nodes: Tensor | None = None) -> AttributedGraph:
    """Entries that are not 0 are edges; their values are attributes unless all are 1."""
    coo = scipy.sparse.coo_matrix(matrix)
    coo.sum_duplicates()
    coo.eliminate_zeros()
    if coo.shape[0] != coo.shape[1]:
        raise Mistake(f"an adjacency matrix is square; this one is {coo.shape[0]} × {coo.shape[1]}")
    pairs = torch.from_numpy(np.stack([coo.row, coo.col], 1).astype(np.int64))
    weights = torch.from_numpy(coo.data.astype(np.float32))[:, None]
    attributes = None if bool((weights == 1).all()) else weights
    directed = bool((coo != coo.T).nnz) if coo.nnz else False
    return link(torch.zeros(coo.shape[0], 0) if nodes is None else nodes, pairs, directed, attributes)


def to_scipy(graph: AttributedGraph) -> Any:
    """A_uv in compressed rows: the first attribute of each edge, or 1."""
    weights = graph.edge_attributes[:, 0] if graph.edge_attributes.shape[1] else torch.ones(len(graph.edges))
    n = len(graph)
    source, target = graph.edges.T.numpy()
    return scipy.sparse.csr_matrix((weights.numpy(), (source, target)), (n, n))


def from_pyg(data: Any, directed: bool | None = None) -> NodeGraph:
    """One graph; without `directed` it is directed if an edge stands in one direction only."""
    return read_tensors(data.to_dict(), "the data", directed)


def read_pt(path: str | Path, directed: bool) -> NodeGraph:
    """The tensors of `Data.to_dict()` in a file of torch.save; nothing else is loaded."""
    check_file(path)
    try:
        values = torch.load(path, weights_only=True)
    except Exception as error:  # torch raises many kinds of a file that is none of its own
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise Mistake(
            f"{show(path)} holds more than tensors ({why[:80]}); "
            f"save the tensors alone: torch.save(data.to_dict(), path)"
        ) from None
    if not isinstance(values, dict):
        raise Mistake(f"{show(path)} holds no dict of tensors; save torch.save(data.to_dict(), path)")
    return read_tensors(values, show(Path(path).name), directed)


def read_tensors(values: Mapping[str, Any], where: str, directed: bool | None) -> NodeGraph:
    """A graph of the tensors that PyG names so."""
    edges = values.get("edge_index")
    if not isinstance(edges, Tensor) or edges.dim() != 2 or len(edges) != 2 or edges.is_floating_point():
        raise Mistake(f"{where}: edge_index is no tensor (2, edges) of node numbers")
    pairs, x, y = edges.T.long().contiguous(), values.get("x"), values.get("y")
    ends = int(pairs.max()) + 1 if len(pairs) else 0
    n = len(x) if isinstance(x, Tensor) else int(values.get("num_nodes") or ends)
    if n > MOST:
        raise Mistake(f"{where}: {n:,} nodes are more than the {MOST:,} that are read; number them from 0 without gaps")
    nodes = as_columns(x) if isinstance(x, Tensor) else torch.zeros(n, 0)
    check_values(nodes, lambda i: f"{where}, node {i}", "attribute")
    attributes = values.get("edge_attr")
    attributes = as_columns(attributes) if isinstance(attributes, Tensor) else None
    if directed is None:
        keys = pairs[:, 0] * n + pairs[:, 1]
        directed = set(keys.tolist()) != set((pairs[:, 1] * n + pairs[:, 0]).tolist())
    notes, names = Notes(), tuple(f"node {i}" for i in range(n))
    graph = link_cleanly(nodes, pairs, directed, lambda k: f"{where}, edge {k}", notes, attributes)
    note_isolated(graph, names, notes)
    told = isinstance(y, Tensor) and y.dim() == 1 and len(y) == n and not y.is_floating_point()
    classes, labels = number_classes(
        [str(k) if k >= 0 else "" for k in y.tolist()] if told and y is not None else [""] * n
    )
    masks = [values.get(name) for name in MASKS]
    parts = read_masks(masks, classes, where) if all(isinstance(mask, Tensor) for mask in masks) else {}
    return NodeGraph(graph, classes, labels, names, parts, notes=notes)


def as_columns(x: Tensor) -> Tensor:
    """Attributes (m, k), of one number each too."""
    return x.float().flatten(1) if x.dim() > 1 else x.float()[:, None]


def read_masks(masks: list[Any], y: Tensor, where: str) -> dict[str, Tensor]:
    """The three parts; a node is in one of them at most."""
    whole = torch.stack([mask.bool() for mask in masks])
    if len(twice := (whole.sum(dim=0) > 1).nonzero()):
        i = int(twice[0])
        names = [name for name, mask in zip(MASKS, whole, strict=True) if bool(mask[i])]
        raise Mistake(
            f"{where}: node {i} is in {' and '.join(names)} ({len(twice)} such nodes); masks must not overlap"
        )
    part = torch.where(whole.any(dim=0), whole.int().argmax(dim=0), OPEN)
    return gather_parts(part, y, lambda i: f"{where}, node {i}")


def from_pyg_batch(batch: Any) -> Graphs:
    """The graphs of a Batch; y where it has one row for each graph."""
    values = batch.to_dict()
    owner, edges = values["batch"], values["edge_index"]
    count = int(owner.max()) + 1 if len(owner) else 0
    sizes = torch.bincount(owner, minlength=count)
    first = sizes.cumsum(0) - sizes
    x = values.get("x")
    nodes = torch.ones(len(owner), 1) if x is None else as_columns(x)
    edges_owner = owner[edges[0]]
    order = edges_owner.argsort(stable=True)
    attributes = values.get("edge_attr")
    attributes = None if attributes is None else as_columns(attributes)
    graphs = []
    for g, rows in enumerate(order.split(torch.bincount(edges_owner, minlength=count).tolist())):
        of_graph = slice(int(first[g]), int(first[g] + sizes[g]))
        pairs = edges[:, rows].T - first[g]
        values_of = None if attributes is None else attributes[rows]
        graphs.append(link(nodes[of_graph], pairs, True, values_of))
    y = values.get("y")
    return gather(graphs, y if isinstance(y, Tensor) and len(y) == count else None)


def to_pyg(found: NodeGraph) -> Any:
    """A Data with x, edge_index, edge_attr, y and masks."""
    pyg = load_pyg()
    graph = found.graph
    values: dict[str, Any] = describe_tensors(graph) | {"y": found.y}
    for name, part in zip(MASKS, ("train", "valid", "test"), strict=True):
        if found.parts:
            mask = torch.zeros(len(graph), dtype=torch.bool)
            mask[found.parts[part]] = True
            values[name] = mask
    return pyg.Data(**values, num_nodes=len(graph))


def to_pyg_batch(graphs: Graphs) -> Any:
    """A Batch, with y where there is one."""
    pyg = load_pyg()
    found = []
    for i in range(len(graphs)):
        graph = graphs.one(i)
        y = {"y": graphs.y[i : i + 1]} if "y" in graphs.arrays else {}
        found.append(pyg.Data(**describe_tensors(graph), **y, num_nodes=len(graph)))
    return pyg.Batch.from_data_list(found)


def describe_tensors(graph: AttributedGraph) -> dict[str, Tensor]:
    """By PyG's names."""
    found = {"x": graph.nodes, "edge_index": graph.edges.T.contiguous()}
    return found | ({"edge_attr": graph.edge_attributes} if graph.edge_attributes.shape[1] else {})


def load_pyg() -> Any:
    """PyG, or a mistake that says how to get it."""
    try:
        return import_module("torch_geometric.data")
    except ImportError:
        raise Mistake("this needs PyG: pip install torch_geometric") from None
