"""Graphs as tables: a list of edges alone, or a folder with nodes.csv and edges.csv.

    edges.csv    source, target, then numbers as attributes of the edge; "part" says train, valid or test of a link
    nodes.csv    id, then numbers as attributes of the node; "label" is its class, "part" train, valid or test
    a list       two ids on a line, and maybe numbers, between spaces, tabs or commas; lines with # or % are passed over

Ids are any texts. Of a list alone the nodes are those that it names, in the order of their numbers, or of their first
appearance where they are no numbers. Nothing in the folder beyond these two files is read.

Systems: graph-data-structure
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from descend import files
from descend.data.detection.annotated import Notes
from descend.data.graphs.clean import Place, check_values, link_cleanly, note_isolated
from descend.data.graphs.links import key_pairs
from descend.data.graphs.node_graph import OPEN, PARTS, NodeGraph, gather_parts, number_classes
from descend.data.reading import read_records, show
from descend.data.tables.records import Records
from descend.data.tables.source import read_csv
from descend.data.tables.values import number_of, plain_numbers
from descend.errors import Mistake, nearest

NODES, EDGES = "nodes.csv", "edges.csv"
ENDS = ("source", "target")
BREAK = re.compile(r"[,;\s]+")


def read_graph_folder(folder: str | Path, directed: bool) -> NodeGraph:
    """nodes.csv and edges.csv."""
    root = Path(folder)
    nodes, edges = read_csv(root / NODES), read_csv(root / EDGES)
    ids = column(nodes, "id")
    node_place = place_lines(NODES, nodes.lines)
    edge_place = place_lines(EDGES, edges.lines)
    index: dict[str, int] = {}
    for i, name in enumerate(ids):
        if not name or name in index:
            what = f"the id {name!r} comes twice" if name else "a node without an id"
            raise Mistake(f"{node_place(i)}: {what}; each node has an id of its own")
        index[name] = i
    columns = [name for name in nodes.columns if name not in ("id", "label", "part")]
    x = read_numbers(nodes, columns, NODES)
    notes = Notes()
    names = tuple(ids)
    pairs = torch.stack([find_ends(edges, end, index, edge_place) for end in ENDS], 1)
    attributes = read_numbers(edges, [name for name in edges.columns if name not in (*ENDS, "part")], EDGES)
    graph = link_cleanly(x, pairs, directed, edge_place, notes, attributes)
    note_isolated(graph, names, notes)
    y, labels = number_classes(nodes.columns.get("label", [""] * len(ids)))
    parts = gather_parts(read_parts(nodes, node_place), y, node_place)
    found = NodeGraph(graph, y, labels, names, parts, tuple(columns), notes=notes)
    return found if "part" not in edges.columns else with_link_parts(found, pairs, read_parts(edges, edge_place))


def place_lines(name: str, lines: list[int]) -> Place:
    return lambda k: f"{name}, line {lines[k]}"


def column(records: Records, name: str) -> list[str]:
    if name not in records.columns:
        known = list(records.columns)
        raise Mistake(f"{records.where} has no column {name!r}.{nearest(name, known)} Columns: {', '.join(known)}")
    return records.columns[name]


def find_ends(edges: Records, end: str, index: dict[str, int], place: Place) -> Tensor:
    """The number of the node at one end of each edge (m)."""
    found = [index.get(name, -1) for name in column(edges, end)]
    if -1 in found:
        k = found.index(-1)
        name = edges.columns[end][k]
        raise Mistake(f"{place(k)}: the edge ends at node {name!r}, which {NODES} does not have; add or correct it")
    return torch.tensor(found, dtype=torch.long)


def read_numbers(records: Records, names: list[str], file: str) -> Tensor:
    """Columns as numbers (m, k)."""
    found = torch.zeros(len(records.lines), len(names))
    for k, name in enumerate(names):
        texts = records.columns[name]
        plain = plain_numbers(texts)
        if plain is not None:
            found[:, k] = plain
            continue
        for i, text in enumerate(texts):
            value = number_of(text, records.decimal_comma)
            if value is None:
                what = repr(text) if text else "nothing"
                raise Mistake(
                    f"{file}, line {records.lines[i]}: column {name!r} holds {what}, not a finite number; "
                    f"correct it, or leave the column out"
                )
            found[i, k] = value
    return found


def read_parts(records: Records, place: Place) -> Tensor:
    """The number of the part of each record, `OPEN` where it is empty."""
    texts = records.columns.get("part", [""] * len(records.lines))
    number = {name: k for k, name in enumerate(PARTS)} | {"": OPEN}
    for i, text in enumerate(texts):
        if text not in number:
            raise Mistake(f"{place(i)}: the part is {text!r}; it must be train, valid, test or empty")
    return torch.tensor([number[text] for text in texts], dtype=torch.long)


def with_link_parts(found: NodeGraph, pairs: Tensor, part: Tensor) -> NodeGraph:
    """The part of each of the graph's links; one that is in training too, or the other way round, is in training.

    A held-out link that is also a training link is told: the answer would be seen.
    """
    n, graph = len(found.graph), found.graph
    part = torch.where(part == OPEN, 0, part)
    wanted, given = key_pairs(graph.pairs, n, graph.directed), key_pairs(pairs, n, graph.directed)
    lowest: dict[int, int] = {}
    leaked: dict[int, int] = {}
    for key, k in zip(given.tolist(), part.tolist(), strict=True):
        if key in lowest and lowest[key] != k:
            leaked[key] = max(k, lowest[key])
        lowest[key] = min(k, lowest.get(key, k))
    found.notes.add(
        "held-out links that are in another part too, taken out of the later one",
        [f"{found.names[key // n]} to {found.names[key % n]} ({PARTS[k]})" for key, k in leaked.items()],
    )
    return replace(found, link_parts=torch.tensor([lowest[key] for key in wanted.tolist()], dtype=torch.long))


def read_edge_list(path: str | Path, directed: bool) -> NodeGraph:
    """A list of edges, without classes and without attributes of the nodes."""
    ends, values, lines = parse_edge_list(read_records(path), show(path))
    distinct = list(dict.fromkeys(end for pair in ends for end in pair))
    if all(name.isdecimal() for name in distinct):
        distinct.sort(key=int)
    index = {name: i for i, name in enumerate(distinct)}
    pairs = torch.tensor([(index[a], index[b]) for a, b in ends], dtype=torch.long)
    place = place_lines(show(Path(path).name), lines)
    attributes = torch.tensor(values, dtype=torch.float32).view(len(ends), -1)
    check_values(attributes, place, "attribute")
    notes = Notes()
    graph = link_cleanly(torch.zeros(len(distinct), 0), pairs, directed, place, notes, attributes)
    note_isolated(graph, tuple(distinct), notes)
    y = torch.full((len(distinct),), -1)
    return NodeGraph(graph, y, (), tuple(distinct), notes=notes)


def parse_edge_list(text: str, where: str) -> tuple[list[tuple[str, str]], list[list[float]], list[int]]:
    """The ends, the attributes and the line of every edge."""
    ends: list[tuple[str, str]] = []
    values: list[list[float]] = []
    lines: list[int] = []
    for line, content in enumerate(text.split("\n"), start=1):
        content = content.strip()
        if not content or content[0] in "#%":
            continue
        parts = BREAK.split(content)
        if not ends and tuple(parts[:2]) == ENDS:
            continue
        numbers = [number_of(part) for part in parts[2:]]
        if len(parts) < 2 or None in numbers:
            raise Mistake(f"{where}, line {line}: {content[:40]!r} is no edge; two nodes, and maybe numbers, make one")
        if values and len(values[0]) != len(numbers):
            raise Mistake(
                f"{where}, line {line}: {len(numbers)} numbers after the nodes, the lines before have {len(values[0])}"
            )
        ends.append((parts[0], parts[1]))
        values.append([number for number in numbers if number is not None])
        lines.append(line)
    if not ends:
        raise Mistake(f"{where} holds no edge; each line names two nodes")
    return ends, values, lines


def write_graph_folder(found: NodeGraph, folder: str | Path) -> None:
    """nodes.csv and edges.csv; an undirected edge is one line."""
    root, graph = Path(folder), found.graph
    columns = found.columns or tuple(f"x{k}" for k in range(graph.nodes.shape[1]))
    part = {i: name for name, rows in found.parts.items() for i in rows.tolist()}
    classes = [found.labels[k] if k >= 0 else "" for k in found.y.tolist()]
    rows: list[list[object]] = [["id", *columns, "label", "part"]]
    for i, values in enumerate(graph.nodes.tolist()):
        rows.append([found.names[i], *values, classes[i], part.get(i, "")])
    write_rows(root / NODES, rows)
    rows = [[*ENDS, *(f"x{k}" for k in range(graph.edge_attributes.shape[1]))]]
    link_part = [[]] * len(graph.pairs) if found.link_parts is None else [[PARTS[k]] for k in found.link_parts.tolist()]
    if found.link_parts is not None:
        rows[0].append("part")
    for (a, b), values, last in zip(graph.pairs.tolist(), graph.pair_attributes.tolist(), link_part, strict=True):
        rows.append([found.names[a], found.names[b], *values, *last])
    write_rows(root / EDGES, rows)


def write_edge_list(found: NodeGraph, path: str | Path) -> None:
    """One line for each edge: two names, and its attributes; nodes without an edge are lost."""
    for name in found.names:
        if not name or BREAK.search(name):
            raise Mistake(f"the node {name!r} has no name that fits on a line of words; write a folder of tables")
    graph = found.graph
    lines = [
        " ".join([found.names[a], found.names[b], *(repr(value) for value in values)])
        for (a, b), values in zip(graph.pairs.tolist(), graph.pair_attributes.tolist(), strict=True)
    ]
    files.write_text(Path(path), "\n".join(lines) + "\n")


def write_rows(path: Path, rows: list[list[object]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    files.write_text(path, text.getvalue())
