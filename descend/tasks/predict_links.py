"""Prediction of links: is there an edge between two nodes? Of pairs (u, v), y = 1 for a link and 0 for none.

    p(u, v) = σ(z_uv)        L = (1/m) Σ_{(u, v)} −y log p − (1 − y) log(1 − p)        z = model(graph, pairs)

Messages run along the edges of the batch, which are those of training alone: an edge that is to be predicted in
evaluation carries none. The unit is the pair.

Systems: graph-task-levels
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn

from descend.contracts import Batch, Move, Task
from descend.losses.classification import binary_cross_entropy
from descend.metrics.ranking import average_precision, find_auc
from descend.ops.graph.batches import read_graph
from descend.ops.graph.structure import Graph


class PredictLinks(Task):
    """A batch is graphs, pairs (m, 2) of nodes numbered within their graph, and y (m); the model gives z (m, 1)."""

    evidence = ("logit", "y")
    model: Callable[[Graph, Tensor], Tensor]

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def logits(self, batch: Batch) -> Tensor:
        """(m)"""
        graph, pairs = read_graph(batch), batch["pairs"]
        if graph.links.graphs > 1:
            sizes = graph.links.sizes
            pairs = pairs + (sizes.cumsum(0) - sizes)[batch["pairs_owner"]][:, None]
        return self.model(graph, pairs)[:, 0]

    def moves(self, batch: Batch) -> Iterator[Move]:
        count = batch["y"].new_tensor(len(batch["y"]))

        def loss() -> Tensor:
            z = self.logits(batch)
            return binary_cross_entropy(z, batch["y"].to(z.dtype)).sum() / count.clamp_min(1)

        yield Move("model", loss, {"loss": count})

    def score(self, batch: Batch) -> dict[str, Tensor]:
        z, y = self.logits(batch), batch["y"]
        right = ((z > 0) == y.bool()).float()
        return {"accuracy": right, "loss": binary_cross_entropy(z, y.to(z.dtype)), "logit": z, "y": y}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """How well links are ranked above pairs without one."""
        z, y = evidence["logit"], evidence["y"]
        return {**means, "auc": find_auc(z, y), "average_precision": average_precision(z, y)}
