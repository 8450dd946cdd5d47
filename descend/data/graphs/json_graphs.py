"""Graphs as JSON: a graph in a .json file, or one on each line of a .jsonl file.

    {"nodes": [[0.5, 1], [2, 3]], "edges": [[0, 1]]}    attributes of each node (or their number alone), pairs
    "edge_attributes": [[..], ..]    "context": [..]    "directed": true
    "names": ["a", "b"]   "labels": ["red", null]   "parts": ["train", null]        of the nodes
    "y": "ring", or 1.5, or [1, 2]   "name": ".."   "part": "test"                  of the graph, in a .jsonl

The node-link form of networkx is read too: nodes are objects with "id" and maybe "x", "label", "part"; edges (or links)
are objects with "source" and "target" and maybe "x" or "weight".

Systems: graph-data-structure
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from descend import files
from descend.data.detection.annotated import Notes
from descend.data.graphs.attributed import AttributedGraph
from descend.data.graphs.clean import link_cleanly, note_isolated
from descend.data.graphs.node_graph import OPEN, PARTS, NodeGraph, gather_parts, number_classes
from descend.data.reading import read_records, show
from descend.errors import Mistake

MOST = 10**7  # nodes that a number alone may ask for


class Parsed(NamedTuple):
    """A graph, and what is said of its nodes."""

    graph: AttributedGraph
    names: tuple[str, ...]
    labels: list[str]
    parts: list[str]


def read_graph_json(path: str | Path, directed: bool) -> NodeGraph:
    """One graph with classes of its nodes."""
    value = files.parse_json(read_records(path), show(path))
    if not isinstance(value, dict):
        raise Mistake(f"{show(path)} holds no JSON object; a graph is one, with nodes and edges")
    notes = Notes()
    where = show(Path(path).name)
    found = parse_graph(value, where, directed, notes)
    note_isolated(found.graph, found.names, notes)
    y, labels = number_classes(found.labels)
    number = {name: k for k, name in enumerate(PARTS)} | {"": OPEN}
    for i, name in enumerate(found.parts):
        if name not in number:
            raise Mistake(f"{where}: the part of node {i} is {name!r}; it must be train, valid, test or null")
    part = torch.tensor([number[name] for name in found.parts], dtype=torch.long)
    parts = gather_parts(part, y, lambda i: f"{where}: node {found.names[i]}")
    return NodeGraph(found.graph, y, labels, found.names, parts, notes=notes)


def parse_graph(value: dict[str, Any], where: str, directed: bool, notes: Notes) -> Parsed:
    """The graph of a JSON object; "directed" in the object counts more than the flag."""
    nodes, edges = value.get("nodes"), value.get("edges", value.get("links"))
    if nodes is None or not isinstance(edges, list):
        raise Mistake(f'{where} lacks "nodes" or "edges"; a graph has both')
    if isinstance(nodes, list) and nodes and isinstance(nodes[0], dict):
        value = flatten(value, nodes, edges, where)
        nodes, edges = value["nodes"], value["edges"]
    x = read_nodes(nodes, where)
    n = len(x)
    if not n:
        raise Mistake(f"{where}: a graph without nodes; leave it out")
    pairs = read_pairs(edges, where)
    attributes = read_matrix(value["edge_attributes"], where, "edge_attributes") if "edge_attributes" in value else None
    if attributes is not None and len(attributes) != len(pairs):
        raise Mistake(f"{where}: {len(attributes)} edge_attributes of {len(pairs)} edges; give one list for each")
    context = read_matrix([value["context"]], where, "context")[0] if "context" in value else None
    told = value.get("directed", directed)
    if not isinstance(told, bool):
        raise Mistake(f'{where}: "directed" is neither true nor false')
    place = lambda k: f"{where}, edge {k + 1}"
    graph = link_cleanly(x, pairs, told, place, notes, attributes, context)
    names = read_texts(value, "names", n, where)
    names = [name or f"node {i}" for i, name in enumerate(names)]
    return Parsed(graph, tuple(names), read_texts(value, "labels", n, where), read_texts(value, "parts", n, where))


def flatten(value: dict[str, Any], nodes: list[Any], edges: list[Any], where: str) -> dict[str, Any]:
    """The node-link form as lists."""
    index: dict[Any, int] = {}
    for i, node in enumerate(nodes):
        if not isinstance(node, dict) or not isinstance(node.get("id"), str | int) or node["id"] in index:
            raise Mistake(f'{where}, node {i + 1}: each node is an object with an "id" of its own')
        index[node["id"]] = i
    pairs, attributes = [], []
    for k, edge in enumerate(edges):
        ends = [edge.get(end) for end in ("source", "target")] if isinstance(edge, dict) else [None, None]
        for end in ends:
            if not isinstance(end, str | int) or end not in index:
                raise Mistake(f"{where}, edge {k + 1}: it ends at node {end!r}, which is not there; correct it")
        pairs.append([index[end] for end in ends])
        attributes.append(edge.get("x", [edge["weight"]] if "weight" in edge else []))
    found: dict[str, Any] = {
        "nodes": [node.get("x", []) for node in nodes],
        "edges": pairs,
        "names": [str(node["id"]) for node in nodes],
        "labels": [node.get("label") for node in nodes],
        "parts": [node.get("part") for node in nodes],
    }
    if any(attributes):
        found["edge_attributes"] = attributes
    return {key: value[key] for key in ("directed", "context", "y", "part", "name") if key in value} | found


def read_nodes(nodes: Any, where: str) -> Tensor:
    """Attributes (n, d); a number alone says how many nodes there are."""
    if isinstance(nodes, int) and not isinstance(nodes, bool) and 0 <= nodes <= MOST:
        return torch.zeros(nodes, 0)
    return read_matrix(nodes, where, "nodes")


def read_pairs(edges: list[Any], where: str) -> Tensor:
    for k, edge in enumerate(edges):
        if not (
            isinstance(edge, list) and len(edge) == 2 and all(type(end) is int and abs(end) < 2**62 for end in edge)
        ):
            raise Mistake(f"{where}, edge {k + 1}: {json.dumps(edge)[:40]} is no pair of node numbers")
    return torch.tensor(edges, dtype=torch.long).view(-1, 2)


def read_matrix(rows: Any, where: str, name: str) -> Tensor:
    """A list of lists of finite numbers, all of one length."""
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise Mistake(f"{where}: {name} is no list of lists of numbers")
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise Mistake(f"{where}: {name}[{i}] has {len(row)} numbers, the first {len(rows[0])}; give all of them")
        for number in row:
            if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
                raise Mistake(f"{where}: {name}[{i}] holds {json.dumps(number)[:40]}, which is no finite number")
    return torch.tensor(rows, dtype=torch.float32).view(len(rows), len(rows[0]) if rows else 0)


def read_texts(value: dict[str, Any], name: str, n: int, where: str) -> list[str]:
    """A text for each node, empty where there is none."""
    found = value.get(name, [None] * n)
    if not isinstance(found, list) or len(found) != n:
        raise Mistake(f"{where}: {name} is no list of {n} texts, one for each node")
    for i, text in enumerate(found):
        if text is not None and not isinstance(text, str | int | bool):
            raise Mistake(f"{where}: {name}[{i}] is neither a text nor null")
    return ["" if text is None else str(text) for text in found]


def write_graph_json(found: NodeGraph, path: str | Path) -> None:
    """One graph; an undirected edge is one pair."""
    part = {i: name for name, rows in found.parts.items() for i in rows.tolist()}
    value = describe_graph(found.graph) | {"names": list(found.names)}
    if found.labels:
        value["labels"] = [found.labels[k] if k >= 0 else None for k in found.y.tolist()]
    if part:
        value["parts"] = [part.get(i) for i in range(len(found.graph))]
    files.write_text(Path(path), json.dumps(value) + "\n")


def describe_graph(graph: AttributedGraph) -> dict[str, Any]:
    """A graph as a JSON object."""
    value: dict[str, Any] = {"directed": graph.directed, "edges": graph.pairs.tolist()}
    value["nodes"] = graph.nodes.tolist() if graph.nodes.shape[1] else len(graph)
    if graph.edge_attributes.shape[1]:
        value["edge_attributes"] = graph.pair_attributes.tolist()
    if len(graph.context):
        value["context"] = graph.context.tolist()
    return value
