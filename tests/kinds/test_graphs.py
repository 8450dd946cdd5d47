"""Recipes of graphs: what they learn, on nodes that teach nothing, on graphs never seen, and on the user's files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from descend import recipes
from descend.contracts import Batch
from descend.data.graphs.embedded import load_planted
from descend.data.graphs.node_graph import NodeSplits
from descend.data.graphs.source import GraphSource, LinkSource, NodeSource, SampledNodeSource
from descend.engine.evaluation import score_set
from descend.engine.loop import Loop
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.graph_links import GraphLinks
from descend.kinds.graph_nodes import GraphNodes, SampledNodes
from descend.kinds.whole_graphs import WholeGraphs
from descend.models.gcn import GCNConfig
from descend.models.gin import GINConfig
from descend.models.graphsage import GraphSAGEConfig
from descend.optim.rules import Adam
from tests.engine.small import training

PLANTED = GraphNodes(
    model=GraphSAGEConfig(width=16, dropout=0.0),
    data=NodeSource(embedded="planted", size=400),
    optim=Adam(lr=0.01),
    loop=Loop(steps=60),
)


def trained(recipe: Any, steps: int) -> Training:
    run = training(recipe)
    for _ in range(steps):
        run.advance()
    return run


def score(run: Training, batches: Any) -> dict[str, float]:
    with torch.no_grad():
        return score_set(run.task, batches)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_karate_club_is_told_from_two_members(seed: int) -> None:
    """At least 31 of 34 sides, those of the two among them."""
    recipe = recipes.get("gcn-karate")
    recipe = replace(recipe, loop=replace(recipe.loop, seed=seed))
    run = trained(recipe, 100)
    splits = recipe.data.read()
    assert len(splits.train) == 2
    with torch.no_grad():
        found = run.task.eval().logits(splits.whole).argmax(1)  # type: ignore[attr-defined]
    assert int((found == splits.y).sum()) >= 31


def test_unseen_nodes_of_the_same_graph_are_told() -> None:
    run = trained(PLANTED, 60)
    assert score(run, PLANTED.test())["accuracy"] > 0.85
    alone = replace(PLANTED, model=recipes.get("mlp-cora").model)
    assert score(trained(alone, 60), alone.test())["accuracy"] < 0.75, "features alone say little"


@pytest.mark.system("graphsage", "inductive")
def test_nodes_and_graphs_never_seen_are_told(tmp_path: Path) -> None:
    """Trained without some nodes in the graph at all; then on these, and on a graph of another size."""
    found = load_planted(400)
    here = torch.arange(400) < 300
    ends = here[found.graph.edges].all(dim=1)
    seen = replace(found.graph, nodes=found.graph.nodes[:300], edges=found.graph.edges[ends])
    seen = replace(seen, edge_attributes=seen.nodes.new_zeros(len(seen.edges), 0))
    everything = torch.arange(300)
    splits = NodeSplits(seen, found.y[:300], everything, everything, everything, found.labels, found.names[:300])
    run = training(PLANTED)
    run.parts.stream.batch = splits.batch("train")  # type: ignore[attr-defined]
    for _ in range(60):
        run.advance()
    new = (~here).nonzero().flatten()
    whole = NodeSplits(found.graph, found.y, everything, everything, new, found.labels, found.names)
    assert score(run, [whole.batch("test")])["accuracy"] > 0.85
    other = load_planted(700)
    rows = torch.arange(700)
    larger = NodeSplits(other.graph, other.y, rows, rows, rows, other.labels, other.names)
    assert run.task.logits(larger.batch("test")).shape == (700, 4)  # type: ignore[attr-defined]


def test_sampled_neighbours_teach_as_well() -> None:
    recipe = SampledNodes(
        model=PLANTED.model,
        data=SampledNodeSource(embedded="planted", size=400, sample=(5, 3)),
        optim=PLANTED.optim,
        loop=Loop(steps=60, batch=64),
    )
    run = trained(recipe, 60)
    assert score(run, recipe.test())["accuracy"] > 0.85
    with pytest.raises(Mistake, match="3 hops, but the model has 2 layers"):
        replace(recipe, data=replace(recipe.data, sample=(5, 3, 2))).build()


def test_rings_are_told() -> None:
    recipe = WholeGraphs(
        model=GINConfig(width=16, depth=3, dropout=0.0),
        data=GraphSource(graphs=600),
        optim=Adam(lr=0.01),
        loop=Loop(steps=150, batch=64),
    )
    assert score(trained(recipe, 150), recipe.test())["accuracy"] > 0.8


def test_a_property_of_molecules_is_regressed() -> None:
    recipe = WholeGraphs(
        model=recipes.get("graph-network-molecules").model,
        data=GraphSource(embedded="molecules", graphs=300),
        optim=Adam(lr=3e-3),
        loop=Loop(steps=80, batch=32),
    )
    scores = score(trained(recipe, 80), recipe.test())
    assert scores["r2"] > 0.4, "the mean predictor has 0"


def test_links_are_ranked_above_chance() -> None:
    recipe = GraphLinks(
        model=GCNConfig(width=16, outputs=1, dropout=0.0),
        data=LinkSource(embedded="planted", size=200),
        optim=Adam(lr=0.01),
        loop=Loop(steps=60),
    )
    assert score(trained(recipe, 60), recipe.test())["auc"] > 0.6


def test_one_graph_is_not_split() -> None:
    for recipe in (PLANTED, GraphLinks(model=GCNConfig(outputs=1))):
        with pytest.raises(Mistake, match="--accumulate 2: a step is one graph"):
            replace(recipe, loop=Loop(batch=4, accumulate=2)).build()


def test_sizes_follow_from_the_data() -> None:
    with pytest.raises(Mistake, match=r"--model\.inputs: the data gives 16"):
        replace(PLANTED, model=GraphSAGEConfig(inputs=99)).build()
    parts = WholeGraphs(model=recipes.get("graph-network-molecules").model, data=GraphSource(graphs=60)).build()
    assert (parts.model.config.inputs, parts.model.config.edges, parts.model.config.context) == (3, 2, 0)


def jsonl(path: Path, lines: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def ring(n: int, **more: Any) -> dict[str, Any]:
    x = float(more.pop("x", 1))
    return {"nodes": [[x]] * n, "edges": [[i, (i + 1) % n] for i in range(n)], **more}


def test_new_graphs_are_judged_by_the_classes_that_are_known(tmp_path: Path) -> None:
    lines = [ring(3 + i % 4, x=i, y=("odd", "even")[i % 2]) for i in range(24)]
    recipe = WholeGraphs(model=GINConfig(width=4, depth=1), data=GraphSource(path=jsonl(tmp_path / "a.jsonl", lines)))
    parts = recipe.build()
    assert parts.save_extra
    parts.save_extra(tmp_path)
    judged = recipe.judge(jsonl(tmp_path / "b.jsonl", lines[:5]), parts.model.eval(), tmp_path)
    [batch] = list[Batch](judged.batches)
    assert batch["y"].tolist() == [1, 0, 1, 0, 1]  # by the model's numbers of "even" and "odd"
    assert score_set(judged.task, [batch])["accuracy"] >= 0
    with pytest.raises(Mistake, match=r"does not know the class 'big'.* It knows even, odd"):
        recipe.judge(jsonl(tmp_path / "c.jsonl", [ring(9, y="big"), ring(4, y="odd")]), parts.model, tmp_path)
    wide = ring(3, y="odd") | {"nodes": [[1.0, 2.0]] * 3}
    with pytest.raises(Mistake, match="node attributes: 2, but the model was trained on 1"):
        recipe.judge(jsonl(tmp_path / "d.jsonl", [wide]), parts.model, tmp_path)


def test_an_empty_graph_is_named(tmp_path: Path) -> None:
    lines = [*(ring(3, y="a") for _ in range(9)), {"nodes": [], "edges": [], "y": "b"}]
    with pytest.raises(Mistake, match=r"line 10: a graph without nodes"):
        WholeGraphs(data=GraphSource(path=jsonl(tmp_path / "a.jsonl", lines))).build()


def test_a_node_of_an_unknown_class_is_named(tmp_path: Path) -> None:
    graph = {**ring(12), "labels": ["a", "b", "c"] * 4}
    (tmp_path / "a.json").write_text(json.dumps(graph))
    recipe = replace(PLANTED, data=NodeSource(path=str(tmp_path / "a.json"), valid=0.25, test=0.25))
    parts = recipe.build()
    assert parts.save_extra
    parts.save_extra(tmp_path)
    (tmp_path / "b.json").write_text(json.dumps({**graph, "labels": ["a", "d", None] * 4}))
    with pytest.raises(Mistake, match=r"does not know the class 'd'\. It knows a, b, c"):
        recipe.judge(str(tmp_path / "b.json"), parts.model, tmp_path)
    (tmp_path / "c.json").write_text(json.dumps(ring(5)))
    with pytest.raises(Mistake, match="no node has a class"):
        recipe.judge(str(tmp_path / "c.json"), parts.model, tmp_path)
