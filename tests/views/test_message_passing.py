"""What a node hears: no farther than the layers reach, and as much as a change of the attributes shows."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from descend.data.graphs.source import NodeSource
from descend.models import gcn
from descend.ops.graph.batches import read_graph
from descend.views.graph_layout import lay_out
from descend.views.message_passing import UNHEARD, count_steps, draw_messages, measure_influence
from tests.close import close

CLUB = NodeSource(embedded="karate").read()


def make(depth: int) -> gcn.GCNForNodes:
    torch.manual_seed(0)
    return gcn.GCNForNodes(replace(gcn.TINY, inputs=34, outputs=2, depth=depth)).double().eval()


def test_steps_are_counted_along_the_edges() -> None:
    edges = torch.tensor([[0, 1], [1, 2], [2, 3], [0, 3]])
    assert count_steps(5, edges, 3).tolist() == [1, 2, 1, 0, 5]


@pytest.mark.parametrize("depth", [1, 2])
def test_layers_reach_as_many_steps(depth: int) -> None:
    graph = read_graph(CLUB.whole)
    graph = graph.update(graph.nodes.double())
    share, steps = measure_influence(make(depth), graph, 16), count_steps(34, CLUB.graph.edges, 16)
    assert (share[steps > depth] == 0).all()
    assert (share[steps <= depth] > 0).any()
    assert share[steps == depth].sum() > 0


def test_the_influence_is_that_of_small_changes() -> None:
    graph, model, v = read_graph(CLUB.whole), make(2), 16
    graph = graph.update(graph.nodes.double())
    k = int(model(graph)[v].argmax())
    total = torch.zeros(34, dtype=torch.float64)
    with torch.no_grad():
        for u in range(34):
            for i in range(34):
                ends = []
                for step in (1e-5, -1e-5):
                    x = graph.nodes.clone()
                    x[u, i] += step
                    ends.append(model(graph.update(x))[v].log_softmax(-1)[k])
                total[u] += ((ends[0] - ends[1]) / 2e-5).abs()
    close(measure_influence(model, graph, v), total / total.sum(), loosen=1e4)  # central differences


def test_the_picture_rings_the_node_and_names_the_unheard() -> None:
    graph, model = read_graph(CLUB.whole), make(1)
    graph = graph.update(graph.nodes.double())
    p = model(graph).detach().softmax(-1)
    shown = draw_messages(model, graph, lay_out(34, CLUB.graph.edges, CLUB.valid), p, CLUB, CLUB.valid).content
    v = shown["rings"].index("given")
    assert v in CLUB.valid.tolist()
    assert shown["classes"][v] == 0
    heard = count_steps(34, CLUB.graph.edges, v) <= 1
    assert [shown["labels"][k] != UNHEARD for k in shown["classes"]] == heard.tolist()
