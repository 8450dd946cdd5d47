"""What nodes bring to a model: their own attributes, or what stands for them; fitted on one graph, kept with the model.

    own         the attributes of the file
    identity    one-hot: node i is unit vector i. A model learns each node, and knows no other graph
    degree      log(1 + in-degree) and a 1, for any graph

    rows        x_v / Σ_k |x_vk|: bags of words, whatever the length of the text
    columns     (x_vk − μ_k) / σ_k over the graph; a column that never changes keeps its scale

Systems: graph-data-structure
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import torch
from torch import Tensor

from descend.data.graphs.attributed import AttributedGraph
from descend.errors import Mistake
from descend.files import field, items, read_json, write_json

Kind = Literal["auto", "own", "identity", "degree"]
Scale = Literal["none", "rows", "columns"]
FILE = "graph_processor.json"
MOST = 5000  # nodes of a graph that get a unit vector each, unless they are asked for
LARGEST = 20_000


@dataclass(frozen=True)
class NodeFeatures:
    """How the nodes of a graph become the vectors of a model."""

    kind: str
    scale: str
    width: int
    """Attributes of a node, as the model takes them."""
    labels: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    @classmethod
    def fit(
        cls,
        graph: AttributedGraph,
        kind: Kind,
        scale: Scale,
        labels: tuple[str, ...] = (),
        columns: tuple[str, ...] = (),
    ) -> Self:
        """μ and σ are those of all nodes: the whole graph is seen in training, only classes are hidden."""
        chosen: str = kind
        if kind == "auto":
            chosen = "own" if graph.nodes.shape[1] else "identity" if len(graph) <= MOST else "degree"
        if chosen == "own" and not graph.nodes.shape[1]:
            raise Mistake("--data.features own: the nodes have no attributes; use identity or degree")
        nodes = describe_nodes(graph, chosen)
        mean: tuple[float, ...] = ()
        std: tuple[float, ...] = ()
        if scale == "columns":
            deviation = nodes.double().std(dim=0, correction=0)
            mean = tuple(nodes.double().mean(dim=0).tolist())
            std = tuple(torch.where(deviation > 0, deviation, 1.0).tolist())
        return cls(chosen, scale, nodes.shape[1], labels, columns, mean, std)

    def __call__(self, graph: AttributedGraph) -> Tensor:
        """x̂ of all nodes (n, width)"""
        nodes = describe_nodes(graph, self.kind)
        if nodes.shape[1] != self.width:
            what = "nodes" if self.kind == "identity" else "node attributes"
            raise Mistake(f"the graph has {nodes.shape[1]} {what}, the model was trained on {self.width}")
        if self.scale == "rows":
            return nodes / nodes.abs().sum(dim=1, keepdim=True).clamp_min(torch.finfo(nodes.dtype).tiny)
        if self.scale == "columns":
            return (nodes - nodes.new_tensor(self.mean)) / nodes.new_tensor(self.std)
        return nodes

    def save(self, folder: Path) -> None:
        """Beside the weights."""
        write_json(Path(folder) / FILE, {**vars(self)})

    @classmethod
    def read(cls, folder: Path) -> Self:
        """What `save` wrote."""
        path = Path(folder) / FILE
        values = read_json(path)
        return cls(
            field(values, "kind", str, path),
            field(values, "scale", str, path),
            field(values, "width", int, path),
            tuple(items(values, "labels", str, path)),
            tuple(items(values, "columns", str, path)),
            tuple(items(values, "mean", float, path)),
            tuple(items(values, "std", float, path)),
        )


def describe_nodes(graph: AttributedGraph, kind: str) -> Tensor:
    """The attributes before scaling."""
    n = len(graph)
    if kind == "identity" and n > LARGEST:
        raise Mistake(f"--data.features identity: {n:,} nodes are too many for a unit vector each; use degree")
    if kind == "identity":
        return torch.eye(n)
    if kind == "degree":
        degree = torch.bincount(graph.edges[:, 1], minlength=n).float()
        return torch.stack([degree.log1p(), torch.ones(n)], 1)
    return graph.nodes
