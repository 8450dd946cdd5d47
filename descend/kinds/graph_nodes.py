"""Recipes for the nodes of a graph: which class has each? Any family of graph networks, or an MLP as the control.

Every step sees the whole graph and the classes of the training nodes; validation and test score other nodes of the same
graph. New graphs with the same attributes are predicted by the same weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch

from descend.contracts import Batch, Exhibit, Stream, Task
from descend.data.graphs.features import NodeFeatures
from descend.data.graphs.formats import read_node_graph
from descend.data.graphs.node_graph import NodeGraph, NodeSplits
from descend.data.graphs.question import Question
from descend.data.graphs.repeated import Repeated
from descend.data.graphs.source import NodeSource, SampledNodeSource, match_graph
from descend.data.streams.arrays import check_labels
from descend.data.streams.shards import process
from descend.engine.parts import Parts
from descend.errors import Mistake, nearest
from descend.kinds.graph_models import build_graph_model, check_one_graph
from descend.kinds.recipe import Judged, Recipe, fit_batch, micro_batch
from descend.models import config_class
from descend.ops.graph.batches import read_graph
from descend.optim.rules import AdamL2
from descend.optim.schedules import Constant
from descend.tasks.classify_nodes import ClassifyFirstNodes, ClassifyNodes, ClassifyNodesAlone


class Learning(NamedTuple):
    """What the training nodes become: a task, its batches, and how many nodes a step has."""

    task: Task
    stream: Stream
    nodes: int


@dataclass(frozen=True)
class GraphNodes(Recipe):
    """A class for each node of one graph; a step is the whole graph, so that --batch is not asked for."""

    model: Any = field(default_factory=lambda: config_class("gcn")())
    data: NodeSource = field(default_factory=NodeSource)
    optim: Any = field(default_factory=AdamL2)
    schedule: Any = field(default_factory=Constant)

    def build(self) -> Parts:
        found = self.data.load()
        splits, features = self.data.prepare(found), self.data.fit(found)
        check_labels(splits.y[splits.y >= 0], len(splits.labels), self.data.source)
        torch.manual_seed(self.loop.seed)
        sizes = {"inputs": features.width, "outputs": len(splits.labels)}
        model = build_graph_model(self.model, "ForNodes", sizes)
        learning = self.learn(model, splits)
        question = Question("nodes", self.data.directed, splits.labels)

        def save(folder: Path) -> None:
            features.save(folder)
            question.save(folder)

        return Parts(
            task=learning.task,
            model=model,
            stream=learning.stream,
            valid=self.hold_out(splits, "valid"),
            optims={"model": self.optim},
            unit="nodes",
            units_per_batch=learning.nodes,
            facts={
                "data": self.data.source,
                "training nodes": len(splits.train),
                "validation nodes": len(splits.valid),
                "test nodes": len(splits.test),
                "inputs": features.width,
                "classes": len(splits.labels),
                **splits.facts,
            },
            save_extra=save,
            exhibits=lambda: show(make_task(model), splits, splits.valid, "validation nodes"),
        )

    def learn(self, model: Any, splits: NodeSplits) -> Learning:
        """The whole graph at every step."""
        check_one_graph(self.loop)
        return Learning(make_task(model), Repeated(splits.batch("train")), len(splits.train))

    def hold_out(self, splits: NodeSplits, part: str) -> Iterable[Batch]:
        """The same graph with the classes of the nodes of another part."""
        return [splits.batch(part)]

    def packages(self) -> tuple[str, ...]:
        """The karate club is networkx's, the imports are Python's own."""
        return () if self.data.path else {"karate": ("networkx",), "imports": ("python",)}.get(self.data.embedded, ())

    def test(self) -> Iterable[Batch]:
        """The test nodes."""
        return self.hold_out(self.data.read(), "test")

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """Every node of another graph whose class is told, by the classes that the model knows."""
        found = read_known(path, NodeFeatures.read(folder), Question.read(folder))
        every = (found.y >= 0).nonzero().flatten()
        if not len(every):
            raise Mistake(f"{path}: no node has a class, so nothing can be judged; use: descend predict")
        splits = NodeSplits(found.graph, found.y, every, every, every, found.labels, found.names)
        task = make_task(model)
        return Judged(task, [splits.batch("test")], lambda: show(task, splits, every, "nodes with a class"))


@dataclass(frozen=True)
class SampledNodes(GraphNodes):
    """The same for a graph that is too large for a step: --batch nodes at a time, each with a sampled tree of
    neighbours. A layer of the model uses up one hop. New graphs are predicted with all neighbours."""

    model: Any = field(default_factory=lambda: config_class("graphsage")())
    data: SampledNodeSource = field(default_factory=SampledNodeSource)

    def learn(self, model: Any, splits: NodeSplits) -> Learning:
        """Minibatches of training nodes."""
        hops, depth = len(self.data.sample), getattr(self.model, "depth", 0)
        if depth and hops != depth:
            raise Mistake(f"--data.sample names {hops} hops, but the model has {depth} layers; give as many")
        batch = fit_batch(self.loop, len(splits.train))
        stream = self.data.stream(splits, micro_batch(self.loop, batch), self.loop.seed, process())
        return Learning(ClassifyFirstNodes(model), stream, batch)

    def hold_out(self, splits: NodeSplits, part: str) -> Iterable[Batch]:
        """The nodes of a part, always with the same trees."""
        return self.data.held_out(splits, part)


def make_task(model: Any) -> ClassifyNodes:
    """By what the model takes: a graph, or the attributes of its nodes."""
    from descend.models.mlp import MLP  # here: a recipe of another family does without it

    return ClassifyNodesAlone(model) if isinstance(model, MLP) else ClassifyNodes(model)


def read_known(path: str, features: NodeFeatures, question: Question) -> NodeGraph:
    """Another graph as a trained model takes it; a class that it does not know is a mistake."""
    found = read_node_graph(path, question.directed)
    for k in found.y[found.y >= 0].unique().tolist():
        name, known = found.labels[k], question.labels
        if name not in known:
            raise Mistake(
                f"{path}: the model does not know the class {name!r}.{nearest(name, known)} It knows {', '.join(known)}"
            )
    return match_graph(found, features, path)


def show(task: ClassifyNodes, splits: NodeSplits, rows: torch.Tensor, of: str) -> list[Exhibit]:
    """What the nodes of these rows tell about the model."""
    from descend.views.graphs import show_nodes

    with torch.no_grad():
        z = task.eval().logits(splits.whole)
    return show_nodes(task.model, read_graph(splits.whole), z, splits, rows, of)
