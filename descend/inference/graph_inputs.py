"""What a user names as graphs: files and folders as for training, whether or not they say what is to be predicted.

    one graph      a folder (nodes.csv, edges.csv, or Planetoid's files), .json, .pt, or a list of edges
    many graphs    .jsonl with a graph on each line, .json with one, .csv or .tsv with a column of SMILES, a SMILES text

A class or number that is told is kept as the truth, which the answers can be compared with.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from descend.data.detection.annotated import Notes
from descend.data.graphs.attributed import AttributedGraph, Graphs, gather
from descend.data.graphs.features import NodeFeatures
from descend.data.graphs.formats import read_link_graph
from descend.data.graphs.json_graphs import parse_graph
from descend.data.graphs.node_graph import NodeGraph
from descend.data.graphs.question import Question
from descend.data.graphs.read_sets import SMILES
from descend.data.graphs.smiles import read_smiles
from descend.data.reading import read_objects, show
from descend.data.tables.source import list_names, read_csv
from descend.data.tables.values import is_missing, number_of
from descend.errors import Mistake

FILES = (".jsonl", ".json", ".csv", ".tsv")


def read_one(path: str, features: NodeFeatures, question: Question) -> NodeGraph:
    """A graph with its nodes as the model takes them; classes as the file has them."""
    found = read_link_graph(path, question.directed)
    return replace(found, graph=replace(found.graph, nodes=features(found.graph)))


@dataclass(frozen=True)
class AskedGraph:
    """A graph, what it is called, its record, and what that says of the answer."""

    name: str
    graph: AttributedGraph
    record: Mapping[str, str] = field(default_factory=dict)
    truth: Any = None


def read_many(inputs: Sequence[str], question: Question) -> list[AskedGraph]:
    """The graphs of files and SMILES, in the order given."""
    return [graph for given in inputs for graph in read_given(given, question)]


def read_given(given: str, question: Question) -> Iterator[AskedGraph]:
    """Of one input."""
    path, suffix = Path(given), Path(given).suffix.lower()
    if os.path.isfile(given) and suffix in (".jsonl", ".json"):
        yield from read_objects_of(path, question)
    elif os.path.isfile(given) and suffix in (".csv", ".tsv"):
        yield from read_molecules_of(path, question)
    elif os.path.exists(given):
        raise Mistake(f"{given}: give a .jsonl with a graph on each line, a .json with one, or a .csv of SMILES")
    elif suffix in FILES:
        raise Mistake(f"{given} does not exist; give a file of graphs, or a SMILES")
    else:
        yield AskedGraph(given, read_smiles(given))


def read_objects_of(path: Path, question: Question) -> Iterator[AskedGraph]:
    """Graphs as JSON; what is predicted may be missing."""
    column, empty = question.column or "y", True
    for line, value in read_objects(path):
        empty = False
        where = f"{show(path.name)}, line {line}"
        graph = parse_graph(value, where, question.directed, Notes()).graph
        if not graph.nodes.shape[1]:
            graph = replace(graph, nodes=torch.ones(len(graph), 1))
        name = str(value.get("name", f"line {line}"))
        yield AskedGraph(name, graph, {"graph": name}, read_truth(value.get(column), question))
    if empty:
        raise Mistake(f"{show(path)} holds no graph; each line is one")


def read_molecules_of(path: Path, question: Question) -> Iterator[AskedGraph]:
    """Molecules of a table; the column that is predicted may be missing."""
    records = read_csv(path)
    column = next((name for name in records.columns if name.lower() == SMILES), "")
    if not column:
        raise Mistake(f"{records.where} has no column 'smiles'. Columns: {list_names(list(records.columns))}")
    others = [name for name in records.columns if name not in (column, "part")]
    wanted = question.column or next(iter(question.targets), "")
    told = wanted if wanted in others else others[0] if len(others) == 1 and not wanted else ""
    for i, text in enumerate(records.columns[column]):
        record = {name: values[i] for name, values in records.columns.items()}
        value = record.get(told)
        if question.targets and value is not None:
            value = number_of(value, records.decimal_comma)  # type: ignore[assignment]
        truth = None if value is None or is_missing(str(value)) else value
        graph = read_smiles(text, f"{records.where}, line {records.lines[i]}")
        yield AskedGraph(text, graph, record, read_truth(truth, question))


def read_truth(value: Any, question: Question) -> Any:
    """A class as a text, numbers as a list with one for each target; None where nothing, or something else, is told."""
    if value is None:
        return None
    if question.labels:
        return str(value)
    numbers = value if isinstance(value, list) else [value]
    plain = all(isinstance(v, int | float) and not isinstance(v, bool) for v in numbers)
    return [float(v) for v in numbers] if plain and len(numbers) == len(question.targets) else None


def join_graphs(asked: Sequence[AskedGraph], question: Question) -> Graphs:
    """Graphs end to end, with the attributes that the model was trained on."""
    for one in asked:
        widths = one.graph.nodes.shape[1], one.graph.edge_attributes.shape[1], len(one.graph.context)
        question.check_widths(widths, one.name)
    return gather([one.graph for one in asked], names=[one.name for one in asked])


def name_truths(found: NodeGraph) -> list[str]:
    """The class of each node by its name, "" where none is told."""
    labels = (*found.labels, "")
    return [labels[k] for k in found.y.tolist()]
