"""Graphs as JSON, one or many: read, written, in networkx's form too, and every fault named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import torch

from descend.data.detection.annotated import Notes
from descend.data.graphs.attributed import gather
from descend.data.graphs.embedded import load_graphs
from descend.data.graphs.graph_set import GraphSet
from descend.data.graphs.json_graphs import parse_graph, read_graph_json, write_graph_json
from descend.data.graphs.karate import load_karate
from descend.data.graphs.read_sets import read_jsonl, write_jsonl
from descend.data.graphs.source import GraphSource, NodeSource
from descend.errors import Mistake
from tests.close import close
from tests.data.graphs.test_attributed import random_graph
from tests.data.graphs.test_edge_lists import same

GRAPH: dict[str, Any] = {
    "nodes": [[1, 2], [3, 4], [5, 6]],
    "edges": [[0, 1], [1, 2]],
    "edge_attributes": [[0.5], [1.5]],
    "context": [9, 8],
    "labels": ["red", "blue", "red"],
    "parts": ["train", "valid", "test"],
}


def read(tmp_path: Path, value: object) -> Any:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(value))
    return read_graph_json(path, directed=False)


@pytest.mark.system("graph-data-structure", "formats")
def test_a_graph_is_read_and_written(tmp_path: Path) -> None:
    found = read(tmp_path, GRAPH)
    assert found.graph.pairs.tolist() == [[0, 1], [1, 2]]
    assert found.graph.pair_attributes.flatten().tolist() == [0.5, 1.5]
    assert found.graph.context.tolist() == [9, 8]
    assert found.y.tolist() == [1, 0, 1]
    for whole in (found, load_karate(), read(tmp_path, GRAPH | {"directed": True})):
        write_graph_json(whole, tmp_path / "again.json")
        again = read_graph_json(tmp_path / "again.json", directed=False)
        same(again, whole)
        assert torch.equal(again.graph.context, whole.graph.context)
    assert len(NodeSource(str(tmp_path / "again.json")).read().test) == 1


@pytest.mark.system("graph-data-structure", "formats")
def test_the_node_link_form_of_networkx(tmp_path: Path) -> None:
    club = nx.karate_club_graph()
    for i in club:
        club.nodes[i]["label"] = club.nodes[i].pop("club")
    found, ours = read(tmp_path, nx.node_link_data(club, edges="links")), load_karate()
    assert torch.equal(found.graph.edges, ours.graph.edges)
    assert torch.equal(found.graph.edge_attributes, ours.graph.edge_attributes)
    assert [found.labels[k] for k in found.y] == [ours.labels[k] for k in ours.y]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"edges": [[0, 1], [1, 7]]}, r"graph\.json, edge 2: the edge ends at node 7, but the nodes are 0 to 2"),
        ({"edges": [[0, 1], [1]]}, "edge 2: .* is no pair"),
        ({"edges": None}, 'lacks "nodes" or "edges"'),
        ({"nodes": [[1, 2], [3], [5, 6]]}, r"nodes\[1\] has 1 numbers"),
        ({"nodes": [[1, 2], [3, "a"], [5, 6]]}, r"nodes\[1\] holds \"a\""),
        ({"nodes": [[1, 2], [3, float("nan")], [5, 6]]}, r"nodes\[1\] holds NaN"),
        ({"nodes": []}, "without nodes"),
        ({"nodes": 10**9}, "nodes is no list of lists"),
        ({"edge_attributes": [[1]]}, "1 edge_attributes of 2 edges"),
        ({"labels": ["red"]}, "labels is no list of 3"),
        ({"labels": ["red", None, "blue"]}, "node node 1: a node of the part valid has no class"),
        ({"parts": ["train", "valid", "exam"]}, "part of node 2 is 'exam'"),
        ({"directed": "yes"}, '"directed" is neither'),
        ({"nodes": [{"id": 1}, {"id": 1}]}, "node 2: each node is an object"),
        (
            {"nodes": [{"id": 1}, {"id": 2}], "edges": [{"source": 1, "target": 3}]},
            "ends at node 3, which is not there",
        ),
    ],
)
def test_faults_are_named(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    with pytest.raises(Mistake, match=why):
        read(tmp_path, GRAPH | change)


@pytest.mark.system("graph-data-structure", "formats")
def test_many_graphs_are_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "graphs.jsonl"
    rings = GraphSet(load_graphs("rings", 20), ("few", "many"), ())
    parts = {"train": torch.arange(12), "valid": torch.arange(12, 16), "test": torch.arange(16, 20)}
    numbers = gather([random_graph(n, n, True) for n in range(1, 8)], torch.randn(7, 2), [f"g{i}" for i in range(7)])
    for found in (rings, GraphSet(rings.graphs, rings.labels, (), parts), GraphSet(numbers, (), ("y 0", "y 1"))):
        write_jsonl(found, path)
        again = read_jsonl(path, "", "auto", directed=True)
        assert (again.labels, again.targets, again.graphs.names) == (found.labels, found.targets, found.graphs.names)
        assert set(again.graphs.arrays) == set(found.graphs.arrays)
        assert all(torch.equal(again.graphs.arrays[name], found.graphs.arrays[name]) for name in found.graphs.arrays)
        assert {k: v.tolist() for k, v in again.parts.items()} == {k: v.tolist() for k, v in found.parts.items()}
    write_jsonl(rings, path)
    splits = GraphSource(str(path), valid=0.2, test=0.2).read()
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [12, 4, 4]
    assert splits.facts["graphs per class"]


def test_equal_graphs_stay_in_one_part() -> None:
    graph = random_graph(5, 1)
    found = GraphSet(gather([graph] * 6 + [random_graph(6, s) for s in range(30)], torch.zeros(36).long()), ("a",), ())
    parts = found.cut(0.3, 0.3)
    assert sum(bool((rows < 6).any()) for rows in parts.values()) == 1
    assert not found.describe_leaks(parts)
    given = {"train": torch.arange(3), "valid": torch.arange(3, 20), "test": torch.arange(20, 36)}
    assert found.describe_leaks(given) == {"in training too": "3 of 17 valid records"}


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (['{"nodes": 2, "edges": [[0, 1]]}'], "line 1 lacks 'y'"),
        (['{"nodes": 2, "edges": [[0, 2]], "y": 1}'], "line 1, edge 1: the edge ends at node 2"),
        (['{"nodes": 0, "edges": [], "y": 1}'], "line 1: a graph without nodes"),
        (['{"nodes": [[1]], "edges": [], "y": 1}', '{"nodes": [[1, 2]], "edges": [], "y": 1}'], "line 2: a node has 2"),
        (['{"nodes": 1, "edges": [], "y": 0.5}', '{"nodes": 1, "edges": [], "y": "a"}'], "line 2: 'y' is 'a'"),
        (
            ['{"nodes": 1, "edges": [], "y": [1, 2]}', '{"nodes": 1, "edges": [], "y": [1]}'],
            "line 2: 'y' has 1 numbers",
        ),
        (['{"nodes": 1, "edges": [], "y": null}'], "line 1: 'y' is neither"),
        (['{"nodes": 1, "edges": [], "y": 1, "part": "exam"}'], "line 1: the part is 'exam'"),
        (["[1]"], "line 1: a list"),
        ([""], "holds no graph"),
    ],
)
def test_wrong_lines_are_named(tmp_path: Path, lines: list[str], why: str) -> None:
    path = tmp_path / "graphs.jsonl"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(Mistake, match=why):
        GraphSource(str(path)).read()


def test_the_target_is_a_class_or_a_number(tmp_path: Path) -> None:
    path = tmp_path / "graphs.jsonl"

    def write(values: list[Any]) -> None:
        path.write_text("".join(json.dumps({"nodes": 2, "edges": [[0, 1]], "size": v}) + "\n" for v in values))

    write([0, 1, 1, 0])
    found = read_jsonl(path, "size", "auto", False)
    assert (found.labels, found.graphs.y.tolist()) == (("0", "1"), [0, 1, 1, 0])
    assert read_jsonl(path, "size", "numbers", False).graphs.y.tolist() == [[0], [1], [1], [0]]
    write([0.5, 1, 2])
    found = read_jsonl(path, "size", "auto", False)
    assert (found.targets, found.labels) == (("size",), ())
    close(found.graphs.y, torch.tensor([[0.5], [1], [2]]))
    assert found.graphs.arrays["nodes"].tolist() == [[1]] * 6
    write(["x", "y", "x"])
    assert read_jsonl(path, "size", "auto", False).labels == ("x", "y")


def test_an_object_says_whether_it_is_directed() -> None:
    value = {"nodes": 2, "edges": [[0, 1]]}
    assert len(parse_graph(value, "here", True, Notes()).graph.edges) == 1
    assert len(parse_graph(value, "here", False, Notes()).graph.edges) == 2
    assert len(parse_graph(value | {"directed": True}, "here", False, Notes()).graph.edges) == 1
