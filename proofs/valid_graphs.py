"""Small valid files of graphs, in every form that is read, and the call that reads them: name -> (write, read)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from descend.data.graphs.edge_lists import write_edge_list, write_graph_folder
from descend.data.graphs.embedded import load_graphs, load_planted
from descend.data.graphs.graph_set import GraphSet
from descend.data.graphs.json_graphs import write_graph_json
from descend.data.graphs.node_graph import NodeGraph
from descend.data.graphs.read_sets import write_jsonl
from descend.data.graphs.source import GraphSource, LinkSource, NodeSource
from tests.data.graphs.python2 import write_set

NODES, GRAPHS = 40, 30


def first(folder: Path, name: str) -> str:
    """The file; if it was renamed, the one that is there."""
    there = [folder / name, *sorted(folder.iterdir())]
    return str(next((path for path in there if path.exists() or path.is_symlink()), folder / name))


def graph() -> NodeGraph:
    return load_planted(NODES)


def write_list(folder: Path) -> None:
    found = graph()
    names = tuple(str(i) for i in range(NODES))
    write_edge_list(NodeGraph(found.graph, found.y, found.labels, names), folder / "a.txt")


def write_node_link(folder: Path) -> None:
    nodes = [{"id": i, "x": [i, 1], "label": "ab"[i % 2]} for i in range(20)]
    links = [{"source": i, "target": (i + 1) % 20, "weight": 1.5} for i in range(20)]
    (folder / "a.json").write_text(json.dumps({"nodes": nodes, "links": links}))


def write_pt(folder: Path) -> None:
    found = graph()
    torch.save({"x": found.graph.nodes, "edge_index": found.graph.edges.T.contiguous(), "y": found.y}, folder / "a.pt")


def write_smiles(folder: Path) -> None:
    texts = ["C" * n + end for n in range(1, 7) for end in ("", "O", "N", "c1ccccc1")]
    lines = [f"{text},{len(text) / 7:.3f}\n" for text in texts]
    (folder / "a.csv").write_text("smiles,y\n" + "".join(lines))


def write_graphs(folder: Path) -> None:
    write_jsonl(GraphSet(load_graphs("rings", GRAPHS), ("few", "many"), ()), folder / "a.jsonl")


VALID: dict[str, tuple[Callable[[Path], None], Callable[[Path], Any]]] = {
    "graph tables": (lambda f: write_graph_folder(graph(), f), lambda f: NodeSource(str(f)).read()),
    "graph json": (
        lambda f: write_graph_json(graph(), f / "a.json"),
        lambda f: NodeSource(first(f, "a.json")).read(),
    ),
    "node-link json": (write_node_link, lambda f: NodeSource(first(f, "a.json")).read()),
    "graph tensors": (write_pt, lambda f: NodeSource(first(f, "a.pt")).read()),
    "planetoid": (write_set, lambda f: NodeSource(str(f)).read()),
    "edge list": (write_list, lambda f: LinkSource(first(f, "a.txt")).read()),
    "graph lines": (write_graphs, lambda f: GraphSource(first(f, "a.jsonl")).read()),
    "smiles": (write_smiles, lambda f: GraphSource(first(f, "a.csv")).read()),
}
