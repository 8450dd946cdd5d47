"""What graphs show: predictions ringed where they are wrong, attention on edges, mistakes drawn, links expected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from descend.contracts import Exhibit
from descend.data.graphs.question import Question, measure_targets
from descend.data.graphs.source import LinkSource, NodeSource, generate_graphs
from descend.models import gat, gcn, gin
from descend.ops.graph.batches import read_graph
from descend.report.exhibits import make_section
from descend.views.graph_links import show_links
from descend.views.graphs import show_graphs, show_nodes
from tests.close import close

CLUB = NodeSource(embedded="karate").read()


def show(model: Any) -> dict[str, Exhibit]:
    graph = read_graph(CLUB.whole)
    z = model.eval()(graph).detach()
    return by_title(show_nodes(model, graph, z, CLUB, CLUB.valid, "validation nodes"))


def by_title(exhibits: list[Exhibit]) -> dict[str, Exhibit]:
    for exhibit in exhibits:
        assert exhibit.kind != "missing", exhibit.content
        assert "could not be drawn" not in make_section(exhibit)
    return {exhibit.title: exhibit for exhibit in exhibits}


@pytest.fixture(scope="module")
def shown() -> dict[str, Exhibit]:
    torch.manual_seed(0)
    model = gat.GATForNodes(replace(gat.TINY, inputs=34, outputs=2))
    return show(model)


def test_wrong_and_given_nodes_are_ringed(shown: dict[str, Exhibit]) -> None:
    drawn = shown["The graph and its predictions"].content
    torch.manual_seed(0)
    model = gat.GATForNodes(replace(gat.TINY, inputs=34, outputs=2)).eval()
    predicted = model(read_graph(CLUB.whole)).argmax(1)
    assert drawn["classes"] == predicted.tolist()
    wrong = {i for i in CLUB.valid.tolist() if predicted[i] != CLUB.y[i]}
    assert {i for i, ring in enumerate(drawn["rings"]) if ring == "wrong"} == wrong
    assert {i for i, ring in enumerate(drawn["rings"]) if ring == "given"} == set(CLUB.train.tolist())
    assert len(drawn["edges"]) == 78


def test_attention_is_shown_on_its_edge(shown: dict[str, Exhibit]) -> None:
    drawn = shown["Attention on edges"].content
    torch.manual_seed(0)
    model = gat.GATForNodes(replace(gat.TINY, inputs=34, outputs=2)).eval()
    graph = read_graph(CLUB.whole)
    share = model.attention(graph)[0].mean(1)
    degree = torch.bincount(graph.links.target)
    weight: dict[tuple[int, int], float] = {}
    for k, (u, v) in enumerate(CLUB.graph.edges.tolist()):
        weight[min(u, v), max(u, v)] = weight.get((min(u, v), max(u, v)), 0.0) + float(share[k] * (degree[v] + 1))
    order = sorted(range(78), key=lambda k: weight[tuple(drawn["edges"][k])])  # type: ignore[index]
    close(torch.tensor(drawn["weights"])[order], torch.arange(78) / 77)


def test_a_network_without_attention_shows_none() -> None:
    model = gcn.GCNForNodes(replace(gcn.TINY, inputs=34, outputs=2))
    titles = show(model)
    assert "Attention on edges" not in titles
    assert {"Confusion matrix", "Map of the nodes", "The graph and its predictions"} <= set(titles)


def question(**more: Any) -> Question:
    return Question("graphs", **more)


def test_the_surest_mistakes_are_drawn() -> None:
    torch.manual_seed(0)
    graphs = generate_graphs("rings", 40).graphs
    model = gin.GINForGraphs(replace(gin.TINY, inputs=3, outputs=2)).eval()
    z = model(read_graph(graphs.arrays)).detach()
    titles = by_title(show_graphs(z, graphs, question(labels=("few", "many"))))
    drawn = titles["Most confident mistakes"].content
    p = model(read_graph(graphs.arrays)).softmax(1)
    wrong = p.argmax(1) != graphs.y
    sure = p.amax(1).masked_fill(~wrong, -1)
    assert drawn["captions"][0].startswith(f"{graphs.names[int(sure.argmax())]}: ")
    assert len(drawn["graphs"]) == min(12, int(wrong.sum()))


def test_errors_are_told_in_the_targets_unit() -> None:
    graphs = generate_graphs("molecules", 30).graphs
    mean, std = measure_targets(graphs.y)
    asked = question(targets=("property",), mean=mean, std=std)
    model = gin.GINForGraphs(replace(gin.TINY, inputs=3, outputs=1)).eval()
    titles = by_title(show_graphs(model(read_graph(graphs.arrays)).detach(), graphs, asked))
    fit = titles["Predicted against true: property"].content
    close(torch.tensor(fit["true"]), graphs.y[:, 0])
    close(torch.tensor(fit["predicted"]).float(), asked.restore(model(read_graph(graphs.arrays)))[:, 0].float())


def test_links_that_are_expected_are_not_there_yet() -> None:
    splits = LinkSource(embedded="karate", valid=0.1, test=0.15).read()
    model = gcn.GCNForEdges(replace(gcn.TINY, inputs=34, outputs=1))
    graph = read_graph(splits.whole)
    titles = by_title(show_links(lambda pairs: model.eval()(graph, pairs)[:, 0], graph, splits))
    drawn = titles["Expected links"].content
    linked = {tuple(sorted(pair)) for pair in splits.graph.edges.tolist()}
    assert len(drawn["extra"]) == 20
    assert not linked & {tuple(sorted(pair)) for pair in drawn["extra"]}
    roc = titles["ROC curve"].content["y"]
    assert roc["the model"][-1] == roc["popularity"][-1] == 1.0
    assert titles["Ranking of links"].content["rows"][0][0] == "the model"
