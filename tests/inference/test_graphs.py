"""Graphs that a run is asked about: nodes, whole graphs and missing links, from the files that users have."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import descend
from descend import cli
from descend.data.graphs.source import GraphSource, LinkSource, NodeSource
from descend.engine.loop import Loop
from descend.errors import Mistake
from descend.inference import open_run
from descend.inference.graphs import GraphPredictor, LinkPredictor, NodeClassifier
from descend.kinds.graph_links import GraphLinks
from descend.kinds.graph_nodes import GraphNodes
from descend.kinds.recipe import Recipe
from descend.kinds.whole_graphs import WholeGraphs
from descend.models.gcn import GCNConfig
from descend.models.gin import GINConfig
from descend.verbs.predict import predict
from tests.close import close


def save(recipe: Recipe, folder: Path) -> Path:
    """The folder of a model that was built, not trained."""
    parts = recipe.build()
    parts.model.eval().save_pretrained(folder)
    assert parts.save_extra
    parts.save_extra(folder)
    return folder


def write_nodes(path: Path, n: int = 12) -> Path:
    """A ring with two attributes a node and two classes, as a folder of tables."""
    path.mkdir()
    lines = ["id,part,a,b,label", *(f"n{i},,{i % 3},{i % 5},{'even' if i % 2 == 0 else 'odd'}" for i in range(n))]
    (path / "nodes.csv").write_text("\n".join(lines) + "\n")
    edges = ["source,target", *(f"n{i},n{(i + 1) % n}" for i in range(n))]
    (path / "edges.csv").write_text("\n".join(edges) + "\n")
    return path


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run's model of nodes, and the graph it was built for."""
    where = tmp_path_factory.mktemp("nodes")
    graph = write_nodes(where / "graph")
    data = NodeSource(path=str(graph), valid=0.2, test=0.2, scale="columns")
    recipe = GraphNodes(model=GCNConfig(width=4), data=data, loop=Loop(steps=1))
    return save(recipe, where / "model"), graph


def test_every_node_has_an_answer(nodes: tuple[Path, Path], tmp_path: Path) -> None:
    model, graph = nodes
    answerer = open_run(model)
    assert isinstance(answerer, NodeClassifier)
    found = answerer.predict([str(graph)])
    assert [answer.node for answer in found] == [f"n{i}" for i in range(12)]
    assert {answer.prediction for answer in found} <= {"even", "odd"}
    assert [answer.truth for answer in found[:2]] == ["even", "odd"]
    source = NodeSource(path=str(graph), valid=0.2, test=0.2, scale="columns")
    z = answerer.forward(source.read().whole).softmax(1).amax(1)
    close(torch.tensor([answer.probability for answer in found]), z)
    out = tmp_path / "answers.csv"
    assert cli.main(["predict", str(model), str(graph), "--out", str(out)]) == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["prediction"] for row in rows] == [answer.prediction for answer in found]
    assert rows[1]["truth"] == "odd"


def test_another_graph_by_the_same_weights(nodes: tuple[Path, Path], tmp_path: Path) -> None:
    model, graph = nodes
    other = write_nodes(tmp_path / "other", 30)
    rows = predict(model, graph, other)
    assert len(rows) == 42
    assert rows[0]["file"] == str(graph)
    assert cli.main(["embed", str(model), str(other), "--out", str(tmp_path / "v.npy")]) == 0
    assert np.load(tmp_path / "v.npy").shape == (30, 2)
    assert descend.embed(model, other).shape == (30, 2)


def test_a_graph_of_other_attributes_is_refused(
    nodes: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"nodes": [[1.0]] * 3, "edges": [[0, 1]]}))
    assert cli.main(["predict", str(nodes[0]), str(tmp_path / "a.json")]) == 2
    said = capsys.readouterr().err
    assert "the graph has 1 node attributes, the model was trained on 2" in said
    assert said.count("\n") == 1
    for arguments in ([], ["nowhere.json"], ["--text", "CCO"]):
        assert cli.main(["predict", str(nodes[0]), *arguments]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def ring(n: int, **more: Any) -> dict[str, Any]:
    return {"nodes": [[float(n)]] * n, "edges": [[i, (i + 1) % n] for i in range(n)], **more}


def write(path: Path, lines: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_whole_graphs_by_class(tmp_path: Path) -> None:
    data = GraphSource(path=write(tmp_path / "a.jsonl", [ring(3 + i, y=("odd", "even")[i % 2]) for i in range(20)]))
    model = save(WholeGraphs(model=GINConfig(width=4, depth=1), data=data), tmp_path / "model")
    new = write(tmp_path / "b.jsonl", [ring(5, name="five", y="odd"), ring(6)])
    answerer = open_run(model)
    assert isinstance(answerer, GraphPredictor)
    found = answerer.predict([new])
    assert [answer.graph for answer in found] == ["five", "line 2"]
    assert [answer.compare() for answer in found] == [[(found[0].values["prediction"], "odd")], []]
    one = write(tmp_path / "c.jsonl", [ring(6)])
    assert answerer.predict([one])[0].values["probability"] == pytest.approx(found[1].values["probability"])
    assert descend.embed(model, new).shape == (2, 4)


def test_whole_graphs_by_number_in_their_unit(tmp_path: Path) -> None:
    lines = [ring(3 + i, mass=100.0 + 7 * i) for i in range(20)]
    data = GraphSource(path=write(tmp_path / "a.jsonl", lines), target="mass", predict="numbers")
    recipe = WholeGraphs(model=GINConfig(width=4, depth=1, outputs=1), data=data)
    model = save(recipe, tmp_path / "model")
    rows = predict(model, write(tmp_path / "b.jsonl", [ring(5, mass=114.0), ring(9)]))
    assert [set(row) for row in rows] == [{"graph", "mass"}] * 2
    z = recipe.build().model.eval()
    batch = recipe.data.read().train.take(torch.tensor([0]))
    from descend.ops.graph.batches import read_graph

    question = recipe.ask(recipe.data.read())
    expected = question.restore(z(read_graph(batch.arrays)).detach())
    [answer] = predict(model, write(tmp_path / "c.jsonl", [{"nodes": batch.arrays["nodes"].tolist(),
        "edges": batch.arrays["edges"].tolist(), "directed": True}]))  # fmt: skip
    assert answer["mass"] == pytest.approx(float(expected), rel=1e-5)


def test_molecules_are_read_from_smiles(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    table = tmp_path / "molecules.csv"
    names = ["C" * n + "O" * (n % 2) for n in range(2, 22)]
    table.write_text("smiles,mass\n" + "".join(f"{name},{len(name) * 14.5}\n" for name in names))
    recipe = WholeGraphs(model=GINConfig(width=4, depth=1, outputs=1), data=GraphSource(path=str(table)))
    model = save(recipe, tmp_path / "model")
    asked = tmp_path / "asked.csv"
    asked.write_text("smiles\nCCO\nc1ccccc1\n")
    rows = predict(model, asked, "CCN")
    assert [row["graph"] for row in rows] == ["CCO", "c1ccccc1", "CCN"]
    with pytest.raises(Mistake, match="'C1CC' is no SMILES"):
        predict(model, "C1CC")


def test_the_most_probable_links_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = GraphLinks(model=GCNConfig(width=4, outputs=1), data=LinkSource(features="degree", valid=0.1, test=0.1))
    model = save(recipe, tmp_path / "model")
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\nc,d\nd,e\n")
    answerer = open_run(model)
    assert isinstance(answerer, LinkPredictor)
    found = answerer.best(100).predict([str(tmp_path / "edges.csv")])
    assert len(found) == 10 - 4
    assert [answer.probability for answer in found] == sorted((a.probability for a in found), reverse=True)
    linked = {frozenset(pair) for pair in ("ab", "bc", "cd", "de")}
    assert not linked & {frozenset((answer.source, answer.target)) for answer in found}
    assert cli.main(["predict", str(model), str(tmp_path / "edges.csv"), "--top", "2"]) == 0
    assert capsys.readouterr().out.count("\n") == 3
