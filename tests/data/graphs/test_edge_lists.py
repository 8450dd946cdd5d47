"""Graphs as tables: read, written, and every wrong record named by file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from descend.data.graphs.attributed import link
from descend.data.graphs.edge_lists import read_edge_list, read_graph_folder, write_edge_list, write_graph_folder
from descend.data.graphs.karate import load_karate
from descend.data.graphs.node_graph import NodeGraph
from descend.data.graphs.source import LinkSource, NodeSource
from descend.errors import Mistake
from tests.close import close

NODES = "id,size,age,label,part\nann,1,30,red,train\nbob,2,40,blue,valid\ncy,3.5,50,red,test\ndee,4,60,,\n"
EDGES = "source,target,weight\nann,bob,0.5\nbob,cy,1\ncy,dee,2\n"


def write(folder: Path, nodes: str = NODES, edges: str = EDGES) -> Path:
    (folder / "nodes.csv").write_text(nodes)
    (folder / "edges.csv").write_text(edges)
    return folder


def same(ours: NodeGraph, theirs: NodeGraph) -> None:
    assert torch.equal(ours.graph.edges, theirs.graph.edges)
    assert torch.equal(ours.graph.edge_attributes, theirs.graph.edge_attributes)
    assert torch.equal(ours.graph.nodes, theirs.graph.nodes)
    assert torch.equal(ours.y, theirs.y)
    assert (ours.labels, ours.names, ours.graph.directed) == (theirs.labels, theirs.names, theirs.graph.directed)
    assert {k: v.tolist() for k, v in ours.parts.items()} == {k: v.tolist() for k, v in theirs.parts.items()}


@pytest.mark.system("graph-data-structure", "formats")
def test_a_folder_of_two_tables(tmp_path: Path) -> None:
    found = read_graph_folder(write(tmp_path), directed=False)
    assert found.names == ("ann", "bob", "cy", "dee")
    assert found.columns == ("size", "age")
    assert found.labels == ("blue", "red")
    assert found.y.tolist() == [1, 0, 1, -1]
    close(found.graph.nodes, torch.tensor([[1, 30], [2, 40], [3.5, 50], [4, 60]]))
    assert found.graph.pairs.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert found.graph.pair_attributes.flatten().tolist() == [0.5, 1, 2]
    assert len(found.graph.edges) == 6
    directed = read_graph_folder(tmp_path, directed=True)
    assert directed.graph.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    splits = NodeSource(str(tmp_path), scale="columns").read()
    assert [part.tolist() for part in (splits.train, splits.valid, splits.test)] == [[0], [1], [2]]
    close(splits.graph.nodes.std(dim=0, correction=0), torch.ones(2))
    assert not found.notes.found


@pytest.mark.system("graph-data-structure", "formats")
@pytest.mark.parametrize("directed", [False, True])
def test_what_is_written_is_read_again(tmp_path: Path, directed: bool) -> None:
    karate = load_karate()
    graph = link(
        torch.randn(34, 3), karate.graph.edges, directed, karate.graph.edge_attributes
    )  # floats keep every digit
    whole = NodeGraph(graph, karate.y, karate.labels, karate.names, karate.parts)
    write_graph_folder(whole, tmp_path)
    same(read_graph_folder(tmp_path, directed), whole)
    bare = NodeGraph(
        link(torch.zeros(34, 0), karate.graph.edges, directed, karate.graph.edge_attributes),
        torch.full((34,), -1),
        (),
        tuple(str(i) for i in range(34)),
    )
    write_edge_list(bare, tmp_path / "club.edges")
    same(read_edge_list(tmp_path / "club.edges", directed), bare)
    with pytest.raises(Mistake, match="'member 0' has no name that fits"):
        write_edge_list(karate, tmp_path / "club.edges")


@pytest.mark.parametrize(
    ("text", "names", "edges"),
    [
        ("0 1\n1 2\n", ("0", "1", "2"), [[0, 1], [1, 2]]),
        ("# a list\n% of friends\n10,2\n2,7\n\n", ("2", "7", "10"), [[0, 2], [0, 1]]),
        ("source\ttarget\nb\ta\na\tc\n", ("b", "a", "c"), [[0, 1], [1, 2]]),
        ("a;b\r\nb;c\r\n", ("a", "b", "c"), [[0, 1], [1, 2]]),
    ],
)
def test_lists_with_other_separators(tmp_path: Path, text: str, names: tuple[str, ...], edges: list[list[int]]) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(text.encode())
    found = read_edge_list(path, directed=False)
    assert found.names == names
    assert sorted(found.graph.pairs.tolist()) == sorted(map(sorted, edges))


def test_an_edge_list_is_enough_for_links(tmp_path: Path) -> None:
    path = tmp_path / "ring.csv"
    path.write_text("".join(f"{i},{(i + k) % 40},1.5\n" for i in range(40) for k in (1, 2)))
    splits = LinkSource(str(path)).read()
    assert len(splits.train) + len(splits.valid.positive) + len(splits.test.positive) == 80
    assert splits.graph.edge_attributes.unique().tolist() == [1.5]
    with pytest.raises(Mistake, match="give a folder with"):
        NodeSource(str(path)).read()


def test_oddities_are_told_and_refused_if_asked(tmp_path: Path) -> None:
    nodes = NODES + "eve,5,70,blue,train\n"
    edges = EDGES + "bob,ann,0.6\ncy,cy,1\nann,bob,0.7\n"
    write(tmp_path, nodes, edges)
    found = read_graph_folder(tmp_path, directed=False)
    assert found.notes.found == {
        "self-loops, left out": ["edges.csv, line 6"],
        "the same edge twice, left out": ["edges.csv, line 7"],
        "edges in one direction only, taken both ways": ["edges.csv, line 3", "edges.csv, line 4"],
        "other attributes than the same edge turned round, which count": ["edges.csv, line 5"],
        "isolated nodes": ["eve"],
    }
    facts = NodeSource(str(tmp_path)).read().facts
    assert facts["self-loops, left out"] == "1: edges.csv, line 6"
    assert facts["isolated nodes"] == "1: eve"
    with pytest.raises(Mistake, match=r"--data\.strict: self-loops, left out, 1: edges\.csv, line 6"):
        NodeSource(str(tmp_path), strict=True).read()
    assert "edges in one direction only, taken both ways" not in read_graph_folder(tmp_path, directed=True).notes.found


@pytest.mark.parametrize(
    ("nodes", "edges", "why"),
    [
        (NODES, EDGES + "ann,zoe,1\n", r"edges\.csv, line 5: the edge ends at node 'zoe'"),
        (NODES, "source,target\nann,bob\nzoe,bob\n", r"edges\.csv, line 3: the edge ends at node 'zoe'"),
        (NODES, "from,target\nann,bob\n", "no column 'source'"),
        (NODES.replace("cy,3.5", "cy,nan"), EDGES, r"nodes\.csv, line 4: column 'size' holds 'nan'"),
        (NODES.replace("cy,3.5", "cy,"), EDGES, r"nodes\.csv, line 4: column 'size' holds nothing"),
        (NODES.replace("cy,3.5", "cy,tall"), EDGES, r"nodes\.csv, line 4: column 'size' holds 'tall'"),
        (NODES.replace("cy,3.5", "bob,3.5"), EDGES, r"nodes\.csv, line 4: the id 'bob' comes twice"),
        (NODES.replace("cy,3.5", ",3.5"), EDGES, r"nodes\.csv, line 4: a node without an id"),
        (NODES.replace("red,test", "red,exam"), EDGES, r"nodes\.csv, line 4: the part is 'exam'"),
        (NODES.replace("red,test", ",test"), EDGES, r"nodes\.csv, line 4: a node of the part test has no class"),
        (NODES.replace("red,test", "red,"), EDGES, "no node of test"),
        (NODES, EDGES.replace("cy,1", "cy,inf"), r"edges\.csv, line 3: column 'weight' holds 'inf'"),
        (NODES.replace("id,", "name,"), EDGES, "no column 'id'"),
        (NODES, EDGES + "ann,bob\n", r"edges\.csv, line 5: 2 fields, but the header has 3"),
    ],
)
def test_wrong_records_are_named_by_their_line(tmp_path: Path, nodes: str, edges: str, why: str) -> None:
    write(tmp_path, nodes, edges)
    with pytest.raises(Mistake, match=why) as found:
        NodeSource(str(tmp_path)).read()
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a b\nc\n", r"list\.txt, line 2: 'c' is no edge"),
        ("a b 1\nb c two\n", r"list\.txt, line 2: 'b c two' is no edge"),
        ("a b 1\nb c\n", r"list\.txt, line 2: 0 numbers after the nodes, the lines before have 1"),
        ("# nothing\n", "holds no edge"),
    ],
)
def test_wrong_lines_of_a_list(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "list.txt"
    path.write_text(text)
    with pytest.raises(Mistake, match=why):
        read_edge_list(path, directed=False)


def test_given_parts_of_links_and_links_that_leak(tmp_path: Path) -> None:
    """A test link that stands in training too, turned round: it is no test link any more, and that is told."""
    nodes = "id\n" + "".join(f"n{i}\n" for i in range(8))
    rows = [(0, 1, "train"), (1, 2, "train"), (2, 3, "valid"), (3, 4, "test"), (5, 6, ""), (1, 0, "test")]
    edges = "source,target,part\n" + "".join(f"n{a},n{b},{part}\n" for a, b, part in rows)
    splits = LinkSource(str(write(tmp_path, nodes, edges))).read()
    assert sorted(splits.train.tolist()) == [[0, 1], [1, 2], [5, 6]]
    assert splits.valid.positive.tolist() == [[2, 3]]
    assert splits.test.positive.tolist() == [[3, 4]]
    [told] = [value for kind, value in splits.facts.items() if "in another part too" in kind]
    assert told == "1: n0 to n1 (test)"
    with pytest.raises(Mistake, match=r"--data\.strict"):
        LinkSource(str(tmp_path), strict=True).read()


def test_a_folder_without_its_tables(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"has no nodes\.csv; a folder holds"):
        NodeSource(str(tmp_path)).read()
    with pytest.raises(Mistake, match="no such file"):
        NodeSource(str(tmp_path / "nowhere")).read()
