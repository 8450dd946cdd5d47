"""Links and what follows from them, beside networkx; a batch of graphs is each of them alone, however it is cut."""

from __future__ import annotations

import gc

import networkx as nx
import pytest
import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.streams.batches import join_batches, slice_examples, take_examples
from descend.models.gcn import TINY, GCNForGraphs, GCNForNodes
from descend.ops.graph import batches
from descend.ops.graph.batches import read_graph
from descend.ops.graph.structure import Graph, Links, build_graph
from tests.close import close
from tests.ops.graph.graphs import join, links_of, some_graphs

pytestmark = pytest.mark.system("graph-data-structure")


@pytest.mark.system("graph-data-structure", "attributes")
def test_attributes_are_there_or_have_width_0() -> None:
    random = torch.Generator().manual_seed(0)
    nodes, attributes = torch.randn(3, 2, generator=random), torch.randn(2, 4, generator=random)
    graph = build_graph(nodes, torch.tensor([(0, 1), (2, 1)]), attributes, torch.ones(1, 5))
    assert [tuple(x.shape) for x in (graph.nodes, graph.edges, graph.context)] == [(3, 2), (2, 4), (1, 5)]
    bare = build_graph(nodes, torch.tensor([(0, 1), (2, 1)]))
    assert [tuple(x.shape) for x in (bare.nodes, bare.edges, bare.context)] == [(3, 2), (2, 0), (1, 0)]
    assert graph.links.adjacency().tolist() == [[0, 0, 0], [1, 0, 1], [0, 0, 0]]  # directed: A_vu of u -> v
    assert torch.equal(graph.update(nodes + 1).edges, attributes)


@pytest.mark.system("graph-data-structure", "attributes", "round-trip")
def test_adjacency_and_back() -> None:
    for graph in some_graphs():
        links = links_of(graph)
        a = links.adjacency()
        close(a, torch.tensor(nx.to_numpy_array(graph, weight=None)).long())
        assert torch.equal(a, a.t())  # an undirected graph
        target, source = a.nonzero(as_tuple=True)
        again = Links(source, target, links.owner, 1)
        assert torch.equal(again.adjacency(), a)
        assert set(zip(source.tolist(), target.tolist(), strict=True)) == set(
            zip(links.source.tolist(), links.target.tolist(), strict=True)
        )


def test_what_is_derived() -> None:
    graphs = some_graphs()
    links = join(graphs)
    degrees = [d for graph in graphs for _, d in graph.degree]
    assert links.degree.tolist() == degrees
    assert links.sizes.tolist() == [len(graph) for graph in graphs]
    assert torch.equal(links.edge_owner, links.owner[links.source])
    a = links.adjacency()
    assert torch.equal(links.looped.adjacency(), a + torch.eye(links.n, dtype=torch.long))
    assert links.reversed.reversed is links
    assert torch.equal(links.outgoing.counts, a.sum(0))
    same = links.owner[:, None] == links.owner
    assert torch.equal(links.complete.adjacency().bool(), same & ~torch.eye(links.n, dtype=torch.bool))
    one_way = Links(links.source[:9], links.target[:9], links.owner, links.graphs)
    assert torch.equal(one_way.reversed.adjacency(), one_way.adjacency().t())
    d = one_way.degree.double()
    expected = torch.where(d > 0, d, torch.inf).rsqrt()
    close(one_way.balance, expected[one_way.source] * expected[one_way.target])


def some_batch() -> tuple[list[Batch], Batch]:
    """Single graphs of different sizes, one of them without edges, and all of them as one batch."""
    random = torch.Generator().manual_seed(0)
    ones: list[Batch] = []
    for i, graph in enumerate([nx.path_graph(4), nx.empty_graph(2), nx.star_graph(5), nx.cycle_graph(3)]):
        links = links_of(graph)
        e, zeros = links.e, torch.zeros(len(graph), dtype=torch.long)
        ones.append({
            "ids": torch.tensor([i]), "nodes": torch.randn(len(graph), TINY.inputs, generator=random),
            "nodes_owner": zeros, "edges": torch.stack([links.source, links.target], 1),
            "edges_owner": torch.zeros(e, dtype=torch.long),
            "edge_attributes": torch.randn(e, 2, generator=random),
            "edge_attributes_owner": torch.zeros(e, dtype=torch.long),
            "context": torch.randn(1, 3, generator=random),
        })  # fmt: skip
    return ones, join_batches(ones)


def answers(batch: Batch) -> tuple[Tensor, Tensor]:
    """Of nodes, and of graphs."""
    torch.manual_seed(0)
    graph, models = read_graph(batch), (GCNForNodes(TINY), GCNForGraphs(TINY))
    nodes, graphs = (model(graph) for model in models)
    return nodes.detach(), graphs.detach()


@pytest.mark.system("graph-data-structure", "batched")
def test_a_batch_is_each_graph_alone() -> None:
    ones, whole = some_batch()
    alone = [answers(one) for one in ones]
    nodes, graphs = answers(whole)
    close(nodes, torch.cat([one[0] for one in alone]))
    close(graphs, torch.cat([one[1] for one in alone]))
    for parts in ([(0, 1), (1, 4)], [(0, 3), (3, 4)]):
        cut = [answers(slice_examples(whole, *part)) for part in parts]
        close(nodes, torch.cat([one[0] for one in cut]))
        close(graphs, torch.cat([one[1] for one in cut]))
    rows = torch.tensor([2, 0, 2])
    close(answers(take_examples(whole, rows))[1], graphs[rows])
    read = read_graph(whole)
    close(read.edges, torch.cat([one["edge_attributes"] for one in ones]))
    close(read.context, whole["context"])


def test_links_are_kept_as_long_as_the_tensors() -> None:
    _, whole = some_batch()
    links = read_graph(whole).links
    assert read_graph(dict(whole)).links is links
    assert read_graph({**whole, "edges": whole["edges"].clone()}).links is not links
    whole["edges"][0] = torch.tensor([1, 1])  # changed in place: an edge from a node to itself
    changed = read_graph(whole).links
    assert changed is not links
    assert int(changed.adjacency().diagonal().sum()) == 1
    assert whole["edges"] in batches.kept
    before = len(batches.kept)
    del whole
    gc.collect()
    assert len(batches.kept) < before  # nothing but the batch kept them
    with torch.inference_mode():
        _, batch = some_batch()
        assert read_graph(batch).links is not read_graph(batch).links  # such tensors do not tell that they changed


def test_no_node_and_no_edge() -> None:
    none = torch.zeros(0, dtype=torch.long)
    graph = Graph(Links(none, none, none, 1), torch.zeros(0, TINY.inputs), torch.zeros(0, 0), torch.zeros(1, 0))
    assert GCNForNodes(TINY)(graph).shape == (0, TINY.outputs)
    assert GCNForGraphs(TINY)(graph).isfinite().all()
