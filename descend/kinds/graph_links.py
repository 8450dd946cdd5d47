"""Recipes for links: which nodes of a graph are linked, though the graph does not say so?

Held-out links are taken out of the graph before training. A step sees the others and as many pairs without a link.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from descend.contracts import Batch, Exhibit
from descend.data.graphs.features import NodeFeatures
from descend.data.graphs.links import LinkSplits, cut_links
from descend.data.graphs.question import Question
from descend.data.graphs.source import LinkSource
from descend.engine.parts import Parts
from descend.kinds.graph_models import build_graph_model, check_one_graph
from descend.kinds.recipe import Judged, Recipe
from descend.metrics.ranking import find_auc
from descend.models import config_class
from descend.ops.graph.batches import read_graph
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.predict_links import PredictLinks


@dataclass(frozen=True)
class GraphLinks(Recipe):
    """A probability for each pair of nodes; a step is the whole graph, so that --batch is not asked for."""

    model: Any = field(default_factory=lambda: config_class("gcn")())
    data: LinkSource = field(default_factory=LinkSource)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)

    def build(self) -> Parts:
        check_one_graph(self.loop)
        splits, features = self.data.read(), self.data.fit(self.data.load())
        torch.manual_seed(self.loop.seed)
        model = build_graph_model(self.model, "ForEdges", {"inputs": features.width, "outputs": 1})
        task, question = PredictLinks(model), Question("links", self.data.directed)
        pairs = (1 + self.data.negatives) * len(splits.train)

        def save(folder: Path) -> None:
            features.save(folder)
            question.save(folder)

        return Parts(
            task=task,
            model=model,
            stream=self.data.stream(splits, self.loop.seed),
            valid=[splits.batch("valid")],
            optims={"model": self.optim},
            unit="pairs",
            units_per_batch=pairs,
            facts={
                "data": self.data.source,
                "inputs": features.width,
                **splits.facts,
                "by popularity alone": describe_popularity(splits),
            },
            save_extra=save,
            exhibits=lambda: show(task, splits),
        )

    def packages(self) -> tuple[str, ...]:
        """The karate club is networkx's, the imports are Python's own."""
        return () if self.data.path else {"karate": ("networkx",), "imports": ("python",)}.get(self.data.embedded, ())

    def test(self) -> Iterable[Batch]:
        """The graph of the training links, and the pairs of the test."""
        return [self.data.read().batch("test")]

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """Links of another graph, held out in the recipe's shares: the others carry the messages."""
        found, features = replace(self.data, path=path).load(), NodeFeatures.read(folder)
        cut = lambda graph: cut_links(graph, found.names, self.data.valid, self.data.test, found.link_parts)
        splits = cut(replace(found.graph, nodes=features(cut(found.graph).graph)))
        task = PredictLinks(model)
        return Judged(task, [splits.batch("test")], lambda: show(task, splits))


def describe_popularity(splits: LinkSplits) -> str:
    """What guessing by the degrees of both ends gets on the validation pairs."""
    part = splits.valid
    return f"AUC {find_auc(splits.score_popularity(part.pairs), part.y):.3f} on the validation pairs"


def show(task: PredictLinks, splits: LinkSplits) -> list[Exhibit]:
    """What the validation pairs tell about the model."""
    from descend.views.graph_links import show_links

    model, graph = task.eval().model, read_graph(splits.whole)
    return show_links(lambda pairs: model(graph, pairs)[:, 0], graph, splits)
