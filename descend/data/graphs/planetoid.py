"""Planetoid files of citation graphs: Cora, CiteSeer, PubMed with the fixed split that papers report on.

    ind.NAME.x, .y          features and one-hot classes of the training nodes 0, 1, ..
    ind.NAME.allx, .ally    those of all nodes but the test nodes; the 500 after the training nodes select
    ind.NAME.tx, .ty        those of the test nodes, in the order of ind.NAME.test.index
    ind.NAME.graph          node -> the nodes that it is linked with

CiteSeer's test index has gaps: such nodes have no features and no class. Pickles are read by `pickled`: nothing runs.

Systems: graph-data-structure
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from descend.data.detection.annotated import Notes
from descend.data.graphs.clean import check_values, link_cleanly, note_isolated
from descend.data.graphs.node_graph import NodeGraph
from descend.data.graphs.pickled import read_pickle
from descend.data.reading import check_file, is_folder, list_entries, read_text, show
from descend.errors import Mistake

PICKLES = ("x", "y", "tx", "ty", "allx", "ally", "graph")
INDEX = "test.index"
SELECTING = 500


def find_planetoid(path: str | Path) -> Path | None:
    """The files' common beginning, FOLDER/ind.NAME: of a folder that holds one such set, or as it was given."""
    given = Path(path)
    if not is_folder(given):
        return given if given.name.startswith("ind.") and is_folder(given.parent) else None
    found = [p for p in list_entries(given) if p.name.startswith("ind.") and p.name.endswith(".graph")]
    sets = [p.with_name(p.name.removesuffix(".graph")) for p in found]
    if len(sets) > 1:
        names = ", ".join(show(p.name) for p in sets)
        raise Mistake(f"{show(path)} holds {names}; name one of them: --data.path {show(sets[0])}")
    return sets[0] if sets else None


def read_planetoid(stem: Path, directed: bool = False) -> NodeGraph:
    """The graph with its fixed parts."""
    files = {part: stem.with_name(f"{stem.name}.{part}") for part in (*PICKLES, INDEX)}
    for path in files.values():
        check_file(path)
    found = {part: read_pickle(files[part]) for part in PICKLES}
    for part in ("x", "tx", "allx"):
        if not scipy.sparse.issparse(found[part]):
            raise Mistake(f"{show(files[part])} holds no sparse matrix of features")
    for part in ("y", "ty", "ally"):
        if not isinstance(found[part], np.ndarray) or found[part].ndim != 2:
            raise Mistake(f"{show(files[part])} holds no matrix of one-hot classes")
    check_sizes(found, files)
    known, taught = found["allx"].shape[0], found["x"].shape[0]
    index = read_index(files[INDEX], known, found["tx"].shape[0])
    n = max(known, int(index.max()) + 1)
    notes = Notes()
    gaps = sorted(set(range(known, n)) - set(index.tolist()))
    notes.add("gaps in the test index, nodes without features or class", [f"node {i}" for i in gaps])
    nodes, classes = torch.zeros(n, found["allx"].shape[1]), torch.zeros(n, found["ally"].shape[1])
    for values, part in ((nodes, "x"), (classes, "y")):
        values[:known] = make_dense(found[f"all{part}"])
        values[index] = make_dense(found[f"t{part}"])
    check_values(nodes, lambda i: f"{show(stem)}.*, node {i}", "feature")
    names = tuple(f"node {i}" for i in range(n))
    pairs = list_links(found["graph"], files["graph"])
    graph = link_cleanly(nodes, pairs, directed, lambda k: f"{show(files['graph'].name)}, link {k + 1}", notes)
    note_isolated(graph, names, notes)
    y = torch.where(classes.sum(dim=1) > 0, classes.argmax(dim=1), -1)
    valid = torch.arange(taught, min(known, taught + SELECTING))
    parts = {"train": torch.arange(taught), "valid": valid, "test": index.sort().values}
    return NodeGraph(graph, y, tuple(str(k) for k in range(classes.shape[1])), names, parts, notes=notes)


def check_sizes(found: dict[str, Any], files: dict[str, Path]) -> None:
    """Features and classes of equally many nodes, of equal widths; training nodes come first among the others."""
    for x, y in (("x", "y"), ("tx", "ty"), ("allx", "ally")):
        if found[x].shape[0] != found[y].shape[0]:
            told = f"{found[x].shape[0]} nodes, {show(files[y])} has {found[y].shape[0]}"
            raise Mistake(f"{show(files[x])} has {told}; give files of one set")
    for parts in (("allx", "x", "tx"), ("ally", "y", "ty")):
        for part in parts[1:]:
            if found[part].shape[1] != found[parts[0]].shape[1]:
                told = f"{found[part].shape[1]} columns, {show(files[parts[0]])} has {found[parts[0]].shape[1]}"
                raise Mistake(f"{show(files[part])} has {told}; give files of one set")
    few, all_ = found["y"], found["ally"]
    if len(few) >= len(all_) or not np.array_equal(few, all_[: len(few)]):
        raise Mistake(f"{show(files['y'])} is not the beginning of {show(files['ally'])}; give files of one set")


def read_index(path: Path, known: int, rows: int) -> Tensor:
    """The numbers of the test nodes, each once, behind all others."""
    index: list[int] = []
    seen: set[int] = set()
    for line, text in enumerate(read_text(path).split("\n"), start=1):
        if not text.strip():
            continue
        where = f"{show(path)}, line {line}"
        if not text.strip().isdecimal():
            raise Mistake(f"{where}: {text.strip()[:40]!r} is not the number of a node")
        node = int(text)
        if node < known:
            raise Mistake(f"{where}: test node {node} is among the {known} nodes that teach or select; parts overlap")
        if node in seen:
            raise Mistake(f"{where}: test node {node} comes twice; leave one out")
        if node > 2 * (known + rows):
            raise Mistake(f"{where}: node {node} is far beyond the {known + rows} nodes with features; correct it")
        seen.add(node)
        index.append(node)
    if len(index) != rows:
        raise Mistake(f"{show(path)} lists {len(index)} test nodes, but features are there of {rows}")
    return torch.tensor(index, dtype=torch.long)


def make_dense(values: Any) -> Tensor:
    array = values.toarray() if scipy.sparse.issparse(values) else values
    return torch.from_numpy(np.asarray(array, dtype=np.float32))


def list_links(graph: Any, path: Path) -> Tensor:
    """Pairs (m, 2) of a dict of lists."""
    if not isinstance(graph, dict):
        raise Mistake(f"{show(path)} holds no dict of neighbours")
    for node, near in graph.items():
        if not (isinstance(node, int) and isinstance(near, list) and all(isinstance(other, int) for other in near)):
            raise Mistake(f"{show(path)}: the neighbours of {node!r} are no list of node numbers")
    source = torch.tensor(list(graph), dtype=torch.long).repeat_interleave(
        torch.tensor([len(near) for near in graph.values()])
    )
    target = torch.tensor([other for near in graph.values() for other in near], dtype=torch.long)
    return torch.stack([source, target], 1)
