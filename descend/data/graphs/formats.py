"""Which reader a path is for.

a folder      nodes.csv and edges.csv, or Planetoid's ind.NAME.*; FOLDER/ind.NAME names one of several sets
.json         one graph            .pt    one graph as PyG's Data.to_dict(), saved with torch.save
.jsonl        many graphs          .csv   many molecules as SMILES; of links: a list of edges, as .tsv, .txt, .edges
"""

from __future__ import annotations

from pathlib import Path

from descend.data.graphs.edge_lists import EDGES, NODES, read_edge_list, read_graph_folder
from descend.data.graphs.exchange import read_pt
from descend.data.graphs.graph_set import GraphSet
from descend.data.graphs.json_graphs import read_graph_json
from descend.data.graphs.node_graph import NodeGraph
from descend.data.graphs.planetoid import find_planetoid, read_planetoid
from descend.data.graphs.read_sets import read_jsonl, read_molecules
from descend.data.reading import check_file, is_folder, show
from descend.errors import Mistake

LISTS = (".csv", ".tsv", ".txt", ".edges")


def read_node_graph(path: str, directed: bool) -> NodeGraph:
    """One graph with classes of its nodes."""
    root = Path(path)
    if stem := find_planetoid(root):
        return read_planetoid(stem, directed)
    if is_folder(root):
        for name in (NODES, EDGES):
            if not (root / name).exists():
                raise Mistake(f"{show(path)} has no {name}; a folder holds {NODES} and {EDGES}, or Planetoid's files")
        return read_graph_folder(root, directed)
    check_file(root)
    if root.suffix.lower() == ".json":
        return read_graph_json(root, directed)
    if root.suffix.lower() == ".pt":
        return read_pt(root, directed)
    raise Mistake(
        f"{show(path)}: give a folder with {NODES} and {EDGES}, a folder of Planetoid's files, a .json or a .pt file"
    )


def read_link_graph(path: str, directed: bool) -> NodeGraph:
    """One graph whose links are predicted."""
    root = Path(path)
    if root.suffix.lower() in LISTS and not is_folder(root):
        check_file(root)
        return read_edge_list(root, directed)
    return read_node_graph(path, directed)


def read_graph_set(path: str, target: str, predict: str, directed: bool) -> GraphSet:
    """Many graphs."""
    check_file(path)
    suffix = Path(path).suffix.lower()
    if suffix == ".jsonl":
        return read_jsonl(path, target, predict, directed)
    if suffix in (".csv", ".tsv"):
        return read_molecules(path, target, predict)
    raise Mistake(f"{show(path)}: give a .jsonl with a graph on each line, or a .csv with a column of SMILES")
