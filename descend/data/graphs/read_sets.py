"""Many graphs from a file: a .jsonl of graphs, or a .csv of molecules as SMILES; a class or numbers for each.

    .jsonl    see `json_graphs`; the field "y", or the one that is named, is predicted; "part" says train, valid or test
    .csv      a column "smiles", one to predict, and maybe "part"

Classes are texts, truth values and few whole numbers; everything else is numbers. Nodes without attributes get a 1.

Systems: graph-data-structure
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend import files
from descend.data.detection.annotated import Notes
from descend.data.graphs.attributed import AttributedGraph, gather
from descend.data.graphs.graph_set import GraphSet
from descend.data.graphs.json_graphs import describe_graph, parse_graph
from descend.data.graphs.node_graph import PARTS, number_classes
from descend.data.graphs.smiles import read_smiles
from descend.data.reading import read_objects, show
from descend.data.tables.source import FEW, find_column, list_names, read_csv
from descend.data.tables.values import is_missing, number_of
from descend.errors import Mistake

SMILES = "smiles"


def read_jsonl(path: str | Path, target: str, predict: str, directed: bool) -> GraphSet:
    """One graph on each line."""
    notes = Notes()
    graphs: list[AttributedGraph] = []
    values: list[Any] = []
    parts: list[Any] = []
    lines: list[int] = []
    names: list[str] = []
    field = target or "y"
    for line, value in read_objects(path):
        where = f"{show(Path(path).name)}, line {line}"
        graph = parse_graph(value, where, directed, notes).graph
        if not graph.nodes.shape[1]:
            graph = replace(graph, nodes=torch.ones(len(graph), 1))
        if field not in value:
            raise Mistake(f"{where} lacks {field!r}, which is predicted; add it, or name another field: --data.target")
        graphs.append(graph)
        values.append(value[field])
        parts.append(value.get("part"))
        lines.append(line)
        names.append(str(value.get("name", f"line {line}")))
    if not graphs:
        raise Mistake(f"{show(path)} holds no graph; each line is one")
    place = lambda i: f"{show(Path(path).name)}, line {lines[i]}"
    y, labels, targets = read_targets(values, field, predict, place)
    graphs = match_widths(graphs, place)
    return GraphSet(gather(graphs, y, names), labels, targets, gather_rows(parts, place), notes)


def match_widths(graphs: list[AttributedGraph], place: Callable[[int], str]) -> list[AttributedGraph]:
    """Graphs with equally many attributes; one without edges takes the width of the others' edges."""
    known = next((graph.edge_attributes.shape[1] for graph in graphs if len(graph.edges)), 0)
    found = [g if len(g.edges) else replace(g, edge_attributes=g.nodes.new_zeros(0, known)) for g in graphs]
    for i, graph in enumerate(found):
        for what, one, first in (
            ("node", graph.nodes.shape[1], found[0].nodes.shape[1]),
            ("edge", graph.edge_attributes.shape[1], known),
            ("graph", len(graph.context), len(found[0].context)),
        ):
            if one != first:
                raise Mistake(
                    f"{place(i)}: a {what} has {one} attributes, in the lines before {first}; make them equal"
                )
    return found


def read_targets(
    values: list[Any], name: str, predict: str, place: Callable[[int], str]
) -> tuple[Tensor, tuple[str, ...], tuple[str, ...]]:
    """y, and the names of its classes or of its numbers."""
    for i, value in enumerate(values):
        if not isinstance(value, str | int | float | list):
            raise Mistake(f"{place(i)}: {name!r} is neither a text, a number nor a list of numbers")
    whole = all(isinstance(value, int) for value in values) and len(set(map(str, values))) <= FEW
    if predict == "classes" or (predict == "auto" and (whole or all(isinstance(value, str) for value in values))):
        texts = [str(value) for value in values]
        if "" in texts:
            raise Mistake(f"{place(texts.index(''))}: no {name!r}; fill it in or delete the line")
        y, labels = number_classes(texts)
        return y, labels, ()
    rows = [value if isinstance(value, list) else [value] for value in values]
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]) or not row:
            raise Mistake(
                f"{place(i)}: {name!r} has {len(row)} numbers, the first has {len(rows[0])}; give all of them"
            )
        for number in row:
            if isinstance(number, str | bool) or number_of(str(number)) is None:
                raise Mistake(f"{place(i)}: {name!r} is {number!r}, which is no finite number; correct it")
    names = (name,) if len(rows[0]) == 1 else tuple(f"{name} {k}" for k in range(len(rows[0])))
    return torch.tensor(rows, dtype=torch.float32), (), names


def gather_rows(parts: list[Any], place: Callable[[int], str]) -> dict[str, Tensor]:
    """Rows of each part; nothing where no record has one."""
    if not any(parts):
        return {}
    for i, part in enumerate(parts):
        if part not in PARTS:
            raise Mistake(f"{place(i)}: the part is {part!r}; each graph is in train, valid or test, or none says so")
    found = {part: torch.tensor([i for i, p in enumerate(parts) if p == part], dtype=torch.long) for part in PARTS}
    if empty := [part for part, rows in found.items() if not len(rows)]:
        raise Mistake(f"{place(0)}: there are parts, but no graph of {empty[0]}; give some, or leave all parts out")
    return found


def read_molecules(path: str | Path, target: str, predict: str) -> GraphSet:
    """A table with a column of SMILES."""
    records = read_csv(path)
    column = next((name for name in records.columns if name.lower() == SMILES), "")
    if not column:
        raise Mistake(f"{records.where} has no column 'smiles'. Columns: {list_names(list(records.columns))}")
    others = [name for name in records.columns if name not in (column, "part")]
    if not target and len(others) != 1:
        raise Mistake(f"--data.target: name the column to predict; {records.where} has {list_names(others)}")
    name = find_column(target, others, "--data.target") if target else others[0]
    place = lambda i: f"{records.where}, line {records.lines[i]}"
    texts = records.columns[name]
    for i, text in enumerate(texts):
        if is_missing(text):
            raise Mistake(f"{place(i)}: no {name!r}; fill it in or delete the line")
    numbers = [number_of(text, records.decimal_comma) for text in texts]
    plain = all(number is not None for number in numbers)
    if predict == "numbers" and not plain:
        i = numbers.index(None)
        raise Mistake(f"{place(i)}: {name!r} is {texts[i]!r}, which is no finite number; correct it")
    values: list[Any] = list(texts)
    if plain:
        integral = all(text.removeprefix("-").isdecimal() for text in texts)
        values = [int(text) for text in texts] if integral else numbers
    graphs = [read_smiles(text, place(i)) for i, text in enumerate(records.columns[column])]
    y, labels, targets = read_targets(values, name, predict, place)
    parts = [part or None for part in records.columns.get("part", [""] * len(texts))]
    return GraphSet(gather(graphs, y, records.columns[column]), labels, targets, gather_rows(parts, place))


def write_jsonl(found: GraphSet, path: str | Path) -> None:
    """One graph on each line, both directions of an edge."""
    part = {i: name for name, rows in found.parts.items() for i in rows.tolist()}
    lines = []
    for i in range(len(found.graphs)):
        y = found.graphs.y[i]
        value = describe_graph(found.graphs.one(i))
        value["y"] = found.labels[int(y)] if found.labels else y.tolist()
        value |= {"part": part[i]} if i in part else {}
        value |= {"name": found.graphs.names[i]} if found.graphs.names else {}
        lines.append(json.dumps(value))
    files.write_text(Path(path), "\n".join(lines) + "\n")
