"""Answers for graphs: a class for each node, an answer for each graph, or the links that are most probably missing.

NodeClassifier     p_v = softmax(z_v) of every node of a graph
GraphPredictor     p_G = softmax(z_G), or ŷ_G = μ + σ z_G in the targets' own units
LinkPredictor      p(u, v) = σ(z_uv) of pairs without a link, the most probable first
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.graphs.features import NodeFeatures
from descend.data.graphs.question import FILE, Question
from descend.data.streams.arrays import InOrder
from descend.engine.hardware import move_batch
from descend.errors import Mistake
from descend.inference.graph_inputs import AskedGraph, join_graphs, name_truths, read_many, read_one
from descend.inference.trained import Trained
from descend.models.mlp import MLP
from descend.ops.graph.aggregate import mean_groups
from descend.ops.graph.batches import read_graph
from descend.ops.graph.candidates import rank_new_links

TOGETHER = 256  # graphs that go through the model together
LINKS = 5  # new links that are told


@dataclass(frozen=True)
class NodeAnswer:
    """A node, its most likely class, and the class that the file says."""

    node: str
    prediction: str
    probability: float
    truth: str = ""
    file: str = ""
    """Where there are several."""

    def as_json(self, top: int) -> dict[str, Any]:
        told = {"file": self.file} if self.file else {}
        return told | {"node": self.node, "prediction": self.prediction, "probability": self.probability}

    def as_rows(self) -> list[dict[str, Any]]:
        return [self.as_json(1) | ({"truth": self.truth} if self.truth else {})]

    def compare(self) -> list[tuple[str | float, str | float]]:
        return [(self.prediction, self.truth)] if self.truth else []


@dataclass(frozen=True)
class GraphAnswer:
    """A graph and what the model says of it: a class with its probability, or a number for each target."""

    graph: str
    values: Mapping[str, str | float]
    record: Mapping[str, str] = field(default_factory=dict)
    truth: Sequence[str | float] = ()

    def as_json(self, top: int) -> dict[str, Any]:
        return {"graph": self.graph, **self.values}

    def as_rows(self) -> list[dict[str, Any]]:
        """The record as it was, and the answer."""
        mine = {f"predicted {name}" if name in self.record else name: value for name, value in self.values.items()}
        return [{**(self.record or {"graph": self.graph}), **mine}]

    def compare(self) -> list[tuple[str | float, str | float]]:
        return list(zip(list(self.values.values())[: len(self.truth)], self.truth, strict=True))


@dataclass(frozen=True)
class LinkAnswer:
    """Two nodes without a link, and how probable one is."""

    source: str
    target: str
    probability: float
    file: str = ""

    def as_json(self, top: int) -> dict[str, Any]:
        told = {"file": self.file} if self.file else {}
        return told | {"source": self.source, "target": self.target, "probability": self.probability}

    def as_rows(self) -> list[dict[str, Any]]:
        return [self.as_json(1)]

    def compare(self) -> list[tuple[str | float, str | float]]:
        """A file says which links there are, not which there will be."""
        return []


@dataclass(frozen=True)
class GraphModel:
    """The model, what it was asked in training, and how it takes a graph."""

    trained: Trained
    question: Question
    takes = "graphs"

    @property
    def features(self) -> NodeFeatures:
        """Of nodes."""
        return NodeFeatures.read(self.trained.folder)

    def forward(self, batch: Batch) -> Tensor:
        """What the model makes of the graphs of a batch; an MLP sees nodes alone."""
        model, batch = self.trained.model, move_batch(batch, self.trained.device)
        z: Tensor = model(batch["nodes"]) if isinstance(model, MLP) else model(read_graph(batch))
        return check_finite(z).cpu()

    @property
    def labels(self) -> tuple[str, ...]:
        return self.question.labels


class NodeClassifier(GraphModel):
    """Classes of nodes."""

    @torch.no_grad()
    def predict(self, inputs: Sequence[str]) -> list[NodeAnswer]:
        """An answer for each node of each graph."""
        answers = []
        for given in inputs:
            found = read_one(given, self.features, self.question)
            best = self.trained.probabilities(self.forward(found.graph.batch())).max(dim=-1)
            told = zip(found.names, best.indices.tolist(), best.values.tolist(), name_truths(found), strict=True)
            file = given if len(inputs) > 1 else ""
            answers += [NodeAnswer(name, self.labels[k], p, truth, file) for name, k, p, truth in told]
        return answers


class GraphPredictor(GraphModel):
    """A class or numbers of whole graphs."""

    @torch.no_grad()
    def predict(self, inputs: Sequence[str]) -> list[GraphAnswer]:
        """An answer for each graph."""
        asked = read_many(inputs, self.question)
        graphs = join_graphs(asked, self.question)
        z = torch.cat([self.forward(batch) for batch in InOrder(graphs.arrays, TOGETHER)])
        if self.question.targets:
            rows = self.question.restore(z).tolist()
            return [answer_numbers(one, row, self.question.targets) for one, row in zip(asked, rows, strict=True)]
        best = self.trained.probabilities(z).max(dim=-1)
        told = zip(asked, best.indices.tolist(), best.values.tolist(), strict=True)
        return [answer_class(one, self.labels[k], p) for one, k, p in told]


@dataclass(frozen=True)
class LinkPredictor(GraphModel):
    """Links that are most probably missing."""

    count: int = LINKS
    """How many of them."""

    def best(self, count: int) -> LinkPredictor:
        """With another number of them."""
        return replace(self, count=count)

    @torch.no_grad()
    def predict(self, inputs: Sequence[str]) -> list[LinkAnswer]:
        """The most probable pairs of each graph."""
        answers = []
        for given in inputs:
            found = read_one(given, self.features, self.question)
            graph = read_graph(move_batch(found.graph.batch(), self.trained.device))
            score = lambda pairs: check_finite(self.trained.model(graph, pairs)[:, 0])
            pairs, z = rank_new_links(score, graph.links, found.graph.directed, self.count)
            told, file = zip(pairs.tolist(), z.sigmoid().tolist(), strict=True), given if len(inputs) > 1 else ""
            answers += [LinkAnswer(found.names[u], found.names[v], p, file) for (u, v), p in told]
        return answers


def answers_graphs(trained: Trained) -> bool:
    """Whether the folder holds a model of graphs."""
    return (trained.folder / FILE).exists()


def open_graph_answerer(trained: Trained) -> NodeClassifier | GraphPredictor | LinkPredictor:
    """By the level that it was asked at."""
    question = Question.read(trained.folder)
    kinds: dict[str, type[NodeClassifier | GraphPredictor | LinkPredictor]] = {
        "nodes": NodeClassifier,
        "graphs": GraphPredictor,
        "links": LinkPredictor,
    }
    return kinds[question.level](trained, question)


def answer_class(asked: AskedGraph, label: str, p: float) -> GraphAnswer:
    truth = () if asked.truth is None else (asked.truth,)
    return GraphAnswer(asked.name, {"prediction": label, "probability": p}, asked.record, truth)


def answer_numbers(asked: AskedGraph, row: list[float], targets: Sequence[str]) -> GraphAnswer:
    return GraphAnswer(asked.name, dict(zip(targets, row, strict=True)), asked.record, asked.truth or ())


def check_finite(z: Tensor) -> Tensor:
    if not z.isfinite().all():
        raise Mistake("the model's answers are not numbers (NaN or infinity): its weights are damaged; copy it again")
    return z


@torch.no_grad()
def embed_graphs(trained: Trained, inputs: Sequence[str]) -> tuple[list[str], Tensor]:
    """Names and vectors: of every node (n, d); of whole graphs the mean over the nodes of each (g, d)."""
    question, model = Question.read(trained.folder), trained.model
    if isinstance(model, MLP):
        raise Mistake(f"{trained.folder} holds a {trained.kind}, which has no vectors of nodes")
    names: list[str] = []
    vectors = []
    if question.level == "graphs":
        graphs = join_graphs(read_many(inputs, question), question)
        for batch in InOrder(graphs.arrays, TOGETHER):
            graph = read_graph(move_batch(batch, trained.device))
            vectors.append(mean_groups(model.hidden(graph), graph.links.owner, graph.links.graphs).cpu())
        return list(graphs.names), torch.cat(vectors)
    features = NodeFeatures.read(trained.folder)
    for given in inputs:
        found = read_one(given, features, question)
        names += found.names
        vectors.append(model.hidden(read_graph(move_batch(found.graph.batch(), trained.device))).cpu())
    return names, torch.cat(vectors)
