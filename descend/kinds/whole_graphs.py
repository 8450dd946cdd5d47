"""Recipes for whole graphs: a class for each, or numbers. Graphs of a batch are laid end to end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from descend.contracts import Batch, Exhibit
from descend.data.graphs.attributed import Graphs
from descend.data.graphs.formats import read_graph_set
from descend.data.graphs.graph_set import GraphSplits
from descend.data.graphs.question import Question, measure_targets
from descend.data.graphs.source import GraphSource
from descend.data.streams.arrays import InOrder, Shuffled, check_labels
from descend.data.streams.shards import process
from descend.engine.parts import Parts
from descend.errors import Mistake, nearest
from descend.kinds.graph_models import build_graph_model
from descend.kinds.recipe import Judged, Recipe, describe_batch, fit_batch, micro_batch
from descend.models import config_class
from descend.ops.graph.batches import read_graph
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.predict_graphs import ClassifyGraphs, RegressGraphs

HELD_OUT = 512  # graphs that are scored together


@dataclass(frozen=True)
class WholeGraphs(Recipe):
    """A class or numbers for each graph. With --batch 0 a step sees all training graphs."""

    model: Any = field(default_factory=lambda: config_class("gin")())
    data: GraphSource = field(default_factory=GraphSource)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)

    def build(self) -> Parts:
        splits = self.data.read()
        question, train = self.ask(splits), splits.train
        if splits.labels:
            check_labels(train.y, len(splits.labels), self.data.source)
        batch = fit_batch(self.loop, len(train))
        torch.manual_seed(self.loop.seed)
        model = build_graph_model(self.model, "ForGraphs", name_sizes(train, len(splits.labels or splits.targets)))
        task = make_task(model, question)
        valid = hold_out(splits.valid, question)
        return Parts(
            task=task,
            model=model,
            stream=Shuffled(prepare(train, question), micro_batch(self.loop, batch), self.loop.seed, *process()),
            valid=valid,
            optims={"model": self.optim},
            unit="graphs",
            units_per_batch=batch,
            facts={
                "data": self.data.source,
                "predicts": ", ".join(splits.targets) if splits.targets else f"{len(splits.labels)} classes",
                "training graphs": len(train),
                "validation graphs": len(splits.valid),
                "test graphs": len(splits.test),
                **splits.facts,
                **describe_batch(self.loop, batch),
            },
            save_extra=question.save,
            exhibits=lambda: show(task, splits.valid, valid, question),
        )

    def ask(self, splits: GraphSplits) -> Question:
        """What must be kept with the model: the classes, or the targets with μ and σ of the training graphs."""
        mean, std = measure_targets(splits.train.y) if splits.targets else ((), ())
        widths, column = splits.train.widths, self.data.target
        return Question("graphs", self.data.directed, splits.labels, splits.targets, mean, std, widths, column)

    def test(self) -> Iterable[Batch]:
        """The test graphs."""
        splits = self.data.read()
        return hold_out(splits.test, self.ask(splits))

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """Every graph of a file that says its class or numbers."""
        question = Question.read(folder)
        graphs = read_known(path, question)
        task, batches = make_task(model, question), hold_out(graphs, question)
        return Judged(task, batches, lambda: show(task, graphs, batches, question))


def name_sizes(graphs: Graphs, outputs: int) -> dict[str, int]:
    """What the graphs and the answers set of a model, by the names of configs."""
    node, edge, context = graphs.widths
    return {"inputs": node, "edges": edge, "context": context, "outputs": outputs}


def make_task(model: Any, question: Question) -> ClassifyGraphs | RegressGraphs:
    """By what is asked."""
    return ClassifyGraphs(model) if question.labels else RegressGraphs(model, question.std)


def prepare(graphs: Graphs, question: Question) -> Batch:
    """Targets standardized, classes as they are."""
    return graphs.arrays if question.labels else graphs.label(question.standardize(graphs.y)).arrays


def hold_out(graphs: Graphs, question: Question) -> InOrder:
    """Graphs that are not trained on, in order."""
    return InOrder(prepare(graphs, question), HELD_OUT)


def read_known(path: str, question: Question) -> Graphs:
    """Graphs of a file with the classes or targets of a trained model; others are a mistake."""
    predict = "classes" if question.labels else "numbers"
    found = read_graph_set(path, question.column, predict, question.directed)
    question.check_widths(found.graphs.widths, path)
    if len(found.targets) != len(question.targets):
        raise Mistake(
            f"{path} says {len(found.targets)} numbers of a graph, the model predicts {len(question.targets)}"
        )
    for name in found.labels:
        if name not in question.labels:
            known = ", ".join(question.labels)
            said = f"{path}: the model does not know the class {name!r}.{nearest(name, question.labels)}"
            raise Mistake(f"{said} It knows {known}")
    if not question.labels:
        return found.graphs
    return found.graphs.label(torch.tensor([question.labels.index(name) for name in found.labels])[found.graphs.y])


def show(
    task: ClassifyGraphs | RegressGraphs, graphs: Graphs, batches: Iterable[Batch], question: Question
) -> list[Exhibit]:
    """What held-out graphs tell about the model."""
    from descend.views.graphs import show_graphs

    task.eval()
    with torch.no_grad():
        z = torch.cat([task.model(read_graph(batch)) for batch in batches])
    return show_graphs(z.cpu(), graphs, question)
