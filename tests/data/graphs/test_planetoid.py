"""Planetoid files: the fixed split, the nodes in their order, and what is wrong with a set."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.io import read_planetoid_data

from descend.data.graphs.node_graph import NodeGraph
from descend.data.graphs.planetoid import find_planetoid, read_planetoid
from descend.data.graphs.source import NodeSource
from descend.errors import Mistake
from tests.close import close
from tests.data.graphs.python2 import write, write_set

FOLDER = os.environ.get("DESCEND_PLANETOID", "")


def read(folder: Path) -> NodeGraph:
    stem = find_planetoid(folder)
    assert stem is not None
    return read_planetoid(stem)


def test_a_set_is_put_together(tmp_path: Path) -> None:
    write_set(tmp_path)
    found = read(tmp_path)
    x = (np.random.default_rng(0).random((10, 5)) < 0.4).astype(np.float32)
    x[:, 0] = 1
    close(found.graph.nodes, torch.from_numpy(x))
    assert found.y.tolist() == [0, 1] * 5
    assert {part: rows.tolist() for part, rows in found.parts.items()} == {
        "train": [0, 1],
        "valid": [2, 3, 4, 5],
        "test": [6, 7, 8, 9],
    }
    assert sorted(found.graph.pairs.tolist()) == [[0, 1], [0, 9], *([i, i + 1] for i in range(1, 9))]
    assert not found.notes.found


def test_gaps_in_the_test_index_are_nodes_without_features_and_class(tmp_path: Path) -> None:
    write_set(tmp_path, gaps=True)
    found = read(tmp_path)
    assert len(found.graph) == 10
    assert found.y[7] == -1
    assert not found.graph.nodes[7].any()
    assert found.notes.found["gaps in the test index, nodes without features or class"] == ["node 7"]
    assert found.notes.found["isolated nodes"] == ["node 7"]
    assert 7 not in found.parts["test"]
    with pytest.raises(Mistake, match=r"--data\.strict: gaps in the test index"):
        NodeSource(str(tmp_path), strict=True).read()


def test_links_in_one_direction_are_told(tmp_path: Path) -> None:
    write_set(tmp_path)
    graph = {i: [(i + 1) % 10, (i - 1) % 10] for i in range(10)} | {0: [1, 9, 0, 1], 4: [3]}
    (tmp_path / "ind.tiny.graph").write_bytes(write(graph))
    found = read(tmp_path)
    assert found.notes.found == {
        "self-loops, left out": ["ind.tiny.graph, link 3"],
        "the same edge twice, left out": ["ind.tiny.graph, link 4"],
        "edges in one direction only, taken both ways": ["ind.tiny.graph, link 13"],
    }
    assert len(found.graph.pairs) == 10


@pytest.mark.parametrize(
    ("part", "value", "why"),
    [
        ("graph", {0: [1, 12]}, r"link 2: the edge ends at node 12, but the nodes are 0 to 9"),
        ("graph", [1, 2], "no dict of neighbours"),
        ("graph", {0: [b"a"]}, "neighbours of 0 are no list"),
        ("y", np.eye(3, dtype=np.int32), "has 2 nodes"),
        ("y", np.eye(2, dtype=np.int32)[[1, 0]], "not the beginning"),
        ("ty", np.ones((4, 3), np.int32), "3 columns"),
        ("x", np.eye(2), "no sparse matrix"),
    ],
)
def test_parts_that_do_not_fit(tmp_path: Path, part: str, value: object, why: str) -> None:
    write_set(tmp_path)
    (tmp_path / f"ind.tiny.{part}").write_bytes(write(value))
    with pytest.raises(Mistake, match=why):
        read(tmp_path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("9\n6\n8\n3\n", "line 4: test node 3 is among the 6 nodes that teach or select"),
        ("9\n6\n8\n9\n", "line 4: test node 9 comes twice"),
        ("9\n6\n8\nseven\n", "line 4: 'seven' is not the number"),
        ("9\n6\n8\n", "lists 3 test nodes, but features are there of 4"),
        ("9\n6\n8\n999\n", "line 4: node 999 is far beyond"),
    ],
)
def test_the_test_index_is_checked(tmp_path: Path, text: str, why: str) -> None:
    write_set(tmp_path)
    (tmp_path / "ind.tiny.test.index").write_text(text)
    with pytest.raises(Mistake, match=why):
        read(tmp_path)


def test_a_missing_file_and_several_sets_are_named(tmp_path: Path) -> None:
    assert find_planetoid(tmp_path) is None
    write_set(tmp_path)
    (tmp_path / "ind.other.graph").write_bytes(b"")
    with pytest.raises(Mistake, match=r"ind\.other, ind\.tiny; name one"):
        find_planetoid(tmp_path)
    assert len(NodeSource(str(tmp_path / "ind.tiny")).read().test) == 4
    (tmp_path / "ind.other.graph").unlink()
    (tmp_path / "ind.tiny.tx").unlink()
    with pytest.raises(Mistake, match=r"ind\.tiny\.tx: no such file"):
        read(tmp_path)


@pytest.mark.skipif(not FOLDER, reason="DESCEND_PLANETOID names no folder of the citation graphs")
@pytest.mark.system("graph-data-structure", "formats")
def test_cora_has_the_fixed_split() -> None:
    found = NodeSource(FOLDER, scale="rows").read()
    assert [len(part) for part in (found.train, found.valid, found.test)] == [140, 500, 1000]
    assert tuple(found.graph.nodes.shape) == (2708, 1433)
    assert len(found.graph.pairs) == 5278
    assert len(found.graph.edges) == 10556
    assert found.y[found.train].bincount().tolist() == [20] * 7
    close(found.graph.nodes.sum(dim=1), torch.ones(2708))
    assert torch.equal(found.train, torch.arange(140))
    assert torch.equal(found.test, torch.arange(1708, 2708))


@pytest.mark.skipif(not FOLDER, reason="DESCEND_PLANETOID names no folder of the citation graphs")
@pytest.mark.system("graph-data-structure", "formats")
def test_cora_is_what_pyg_reads() -> None:
    """PyG unpickles the same files; its features, classes, masks and edges are ours."""
    theirs = read_planetoid_data(FOLDER, "cora")
    ours = NodeSource(FOLDER).read()
    close(ours.graph.nodes, theirs.x)
    assert torch.equal(ours.y, theirs.y)
    assert torch.equal(ours.graph.edges.T, theirs.edge_index)
    masks = (theirs.train_mask, theirs.val_mask, theirs.test_mask)
    for rows, mask in zip((ours.train, ours.valid, ours.test), masks, strict=True):
        assert torch.equal(rows, mask.nonzero().flatten())
