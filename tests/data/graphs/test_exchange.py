"""Graphs of networkx, scipy and PyG: read and given back."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Batch, Data

from descend.data.graphs.attributed import link
from descend.data.graphs.embedded import load_graphs
from descend.data.graphs.exchange import (
    from_networkx,
    from_pyg,
    from_pyg_batch,
    from_scipy,
    to_networkx,
    to_pyg,
    to_pyg_batch,
    to_scipy,
)
from descend.data.graphs.karate import load_karate
from descend.data.graphs.source import NodeSource
from descend.errors import Mistake
from descend.ops.graph.batches import read_graph
from tests.close import close
from tests.data.graphs.test_attributed import graphs, random_graph
from tests.data.graphs.test_edge_lists import same


@pytest.mark.system("graph-data-structure", "formats")
def test_networkx_both_ways() -> None:
    karate = load_karate()
    made = to_networkx(karate)
    assert nx.is_isomorphic(made, nx.karate_club_graph())
    again = from_networkx(made)
    assert torch.equal(again.graph.edges, karate.graph.edges)
    assert torch.equal(again.graph.edge_attributes, karate.graph.edge_attributes)
    assert torch.equal(again.y, karate.y)
    directed = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "c")])
    found = from_networkx(directed)
    assert found.names == ("a", "b", "c")
    assert found.graph.edges.tolist() == [[0, 1], [1, 2]]
    assert found.graph.directed
    assert found.notes.found == {"self-loops, left out": ["edge 'c' to 'c'"]}
    assert from_networkx(nx.empty_graph(2)).notes.found == {"isolated nodes": ["0", "1"]}
    for attributes, why in (({"x": [1.0]}, "only 1 of 3 nodes"), ({"x": [float("nan")]}, "nodes, 0: attribute 0")):
        broken = nx.path_graph(3)
        broken.add_node(0, **attributes)
        if "nan" in str(attributes):
            broken.add_nodes_from([1, 2], x=[1.0])
        with pytest.raises(Mistake, match=why):
            from_networkx(broken)


@pytest.mark.system("graph-data-structure", "formats")
def test_scipy_both_ways() -> None:
    random = np.random.default_rng(0)
    dense = np.triu(random.random((9, 9)) * (random.random((9, 9)) < 0.3), 1).astype(np.float32)
    for matrix in (dense, dense + dense.T):
        for form in (scipy.sparse.csr_matrix, scipy.sparse.coo_matrix, scipy.sparse.csc_array):
            graph = from_scipy(form(matrix), torch.zeros(9, 2))
            assert graph.directed is not bool((matrix == matrix.T).all())
            assert np.array_equal(to_scipy(graph).toarray(), matrix)
    ones = from_scipy(nx.to_scipy_sparse_array(nx.karate_club_graph(), weight=None))
    assert torch.equal(ones.edges, load_karate().graph.edges)
    assert ones.edge_attributes.shape[1] == 0
    assert np.array_equal(to_scipy(ones).toarray(), nx.to_numpy_array(nx.karate_club_graph(), weight=None))
    with pytest.raises(Mistake, match="3 × 4"):
        from_scipy(np.zeros((3, 4)))


@pytest.mark.system("graph-data-structure", "formats")
def test_pyg_data_both_ways(tmp_path: Path) -> None:
    karate = load_karate()
    data = to_pyg(karate)
    assert data.is_undirected()
    assert data.validate()
    found = from_pyg(data)
    assert torch.equal(found.graph.edges, karate.graph.edges)
    assert torch.equal(found.graph.edge_attributes, karate.graph.edge_attributes)
    assert {k: v.tolist() for k, v in found.parts.items()} == {k: v.tolist() for k, v in karate.parts.items()}
    assert torch.equal(found.y, karate.y)
    torch.save(data.to_dict(), tmp_path / "club.pt")
    splits = NodeSource(str(tmp_path / "club.pt")).read()
    assert splits.train.tolist() == [0, 33]
    torch.save(data, tmp_path / "club.pt")
    with pytest.raises(Mistake, match=r"holds more than tensors .*torch\.save\(data\.to_dict\(\), path\)"):
        NodeSource(str(tmp_path / "club.pt")).read()
    directed = Data(x=torch.zeros(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([1, 0, 1]))
    assert from_pyg(directed).graph.directed
    same(from_pyg(to_pyg(from_pyg(directed))), from_pyg(directed))


@pytest.mark.system("graph-data-structure", "formats")
def test_a_batch_of_pyg_is_a_set_of_graphs() -> None:
    ours = graphs(6)
    alone = [ours.one(i) for i in range(6)]
    data = [
        Data(x=g.nodes, edge_index=g.edges.T, edge_attr=g.edge_attributes, y=ours.y[i : i + 1])
        for i, g in enumerate(alone)
    ]
    theirs = Batch.from_data_list(data)
    made = to_pyg_batch(ours)
    assert all(torch.equal(made[name], theirs[name]) for name in ("x", "edge_index", "edge_attr", "y", "batch", "ptr"))
    found = from_pyg_batch(theirs)
    for name in ("nodes", "nodes_owner", "edges", "edges_owner", "edge_attributes", "y"):
        assert torch.equal(found.arrays[name], ours.arrays[name]), name
    whole = read_graph(found.arrays)
    close(whole.nodes, theirs.x)
    assert torch.equal(torch.stack([whole.links.source, whole.links.target]), theirs.edge_index)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"edge_index": torch.tensor([[0, 1], [1, 9]])}, "edge 1: the edge ends at node 9, but the nodes are 0 to 2"),
        ({"edge_index": torch.tensor([[0.0], [1.0]])}, "edge_index is no tensor"),
        ({"x": torch.tensor([[1.0], [float("nan")], [2.0]])}, "node 1: attribute 0 is nan"),
        ({"val_mask": torch.tensor([True, True, False])}, "node 0 is in train_mask and val_mask"),
        ({"test_mask": torch.tensor([False, False, False])}, "no node of test"),
        ({"edge_index": torch.tensor([[0], [10**12]]), "x": None}, "1,000,000,000,001 nodes are more than"),
        ({"y": torch.tensor([0, -1, 1])}, "node 1: a node of the part valid has no class"),
    ],
)
def test_faults_of_tensors_are_named(change: dict[str, torch.Tensor], why: str) -> None:
    values = {
        "x": torch.ones(3, 1),
        "edge_index": torch.tensor([[0, 1], [1, 2]]),
        "y": torch.tensor([0, 1, 1]),
        **{f"{part}_mask": torch.eye(3)[i].bool() for i, part in enumerate(("train", "val", "test"))},
    }
    with pytest.raises(Mistake, match=why):
        from_pyg(Data(**(values | change)))


def test_attributes_survive_a_walk_through_all_of_them() -> None:
    graph = random_graph(7, 2)
    matrix = to_scipy(link(graph.nodes, graph.edges, False, graph.edge_attributes[:, :1]))
    assert torch.equal(from_scipy(matrix, graph.nodes).edge_attributes, graph.edge_attributes[:, :1])
    assert load_graphs("rings", 5).widths == (3, 2, 0)
