"""Classification of the nodes of a graph, of which some have a class that is known.

    L = (1/|V_y|) Σ_{v ∈ V_y} −log softmax(z_v)_{y_v}        z = model(graph), V_y the labelled nodes of the part

The model sees the whole graph, with the attributes of all nodes (transductive), or other graphs than those that are
judged (inductive): the task is the same. The unit is the labelled node, so that graphs with more of them count more.

Systems: graph-task-levels
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from descend.contracts import Batch, Move, Task
from descend.losses.classification import cross_entropy
from descend.ops.graph.batches import read_graph
from descend.tasks.classify import PREDICTED, Classify, judge_classes, score_classes


class ClassifyNodes(Task):
    """A batch is graphs and the classes y (n) of their nodes, −1 for those of no or another part; the model makes
    logits (n, classes)."""

    evidence = PREDICTED

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def logits(self, batch: Batch) -> Tensor:
        """(n, classes)"""
        logits: Tensor = self.model(read_graph(batch))
        return logits

    def moves(self, batch: Batch) -> Iterator[Move]:
        labelled = batch["y"] >= 0
        count = labelled.sum()

        def loss() -> Tensor:
            z = self.logits(batch)
            return cross_entropy(z[labelled], batch["y"][labelled]).sum() / count.clamp_min(1)

        yield Move("model", loss, {"loss": count})

    def choices(self, batch: Batch) -> tuple[Tensor, Tensor]:
        labelled = batch["y"] >= 0
        return self.logits(batch)[labelled], batch["y"][labelled]

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return score_classes(*self.choices(batch))

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        return judge_classes(means, evidence)


class ClassifyNodesAlone(ClassifyNodes):
    """The control: the model sees the attributes of each node, and no edge."""

    def logits(self, batch: Batch) -> Tensor:
        logits: Tensor = self.model(batch["nodes"])
        return logits


class ClassifyFirstNodes(Classify):
    """The same in minibatches, for graphs that are too large to be seen at once: each example is a node with a sampled
    tree of neighbours (`data/graphs/sampling.py`), in which it comes first; y (b) are the classes of these nodes."""

    def logits(self, batch: Batch) -> Tensor:
        graph = read_graph(batch)
        sizes = graph.links.sizes
        logits: Tensor = self.model(graph)[sizes.cumsum(0) - sizes]
        return logits
