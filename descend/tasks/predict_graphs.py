"""One answer for a whole graph: a class, or numbers.

    class      L = (1/g) Σ_G −log softmax(z_G)_{y_G}         z = model(graphs) (g, classes)
    numbers    L = (1/g) Σ_G Σ_t (z_Gt − y_Gt)²              z = model(graphs) (g, t), targets standardized

The model pools over the nodes of each graph (its readout), so that graphs of any size are laid end to end.

Systems: graph-task-levels
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Move, Task
from descend.metrics.regression import mean_absolute_error, r_squared, root_mean_squared_error
from descend.ops.graph.batches import read_graph
from descend.ops.graph.structure import Graph
from descend.tasks.classify import Classify
from descend.tasks.supervise import NUMBERS


class ClassifyGraphs(Classify):
    """A batch is graphs and their classes y (g)."""

    def logits(self, batch: Batch) -> Tensor:
        logits: Tensor = self.model(read_graph(batch))
        return logits


class RegressGraphs(Task):
    """A batch is graphs and their standardized targets y (g, t); `units` (t) are the standard deviations."""

    evidence = ("predicted", "y")
    model: Callable[[Graph], Tensor]

    def __init__(self, model: nn.Module, units: tuple[float, ...] = (1.0,)):
        super().__init__()
        self.model, self.units = model, units

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: NUMBERS.cost(self.model(read_graph(batch)), batch["y"]).mean())

    def score(self, batch: Batch) -> dict[str, Tensor]:
        z, y = self.model(read_graph(batch)), batch["y"]
        return {"loss": NUMBERS.cost(z, y), "predicted": z, "y": y}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """Errors in the targets' own units and the variance explained: means over the targets, where there are
        several."""
        units = torch.tensor(self.units, dtype=torch.float64)
        predicted, y = (evidence[name].double() * units for name in self.evidence)
        measures = {"mae": mean_absolute_error, "rmse": root_mean_squared_error, "r2": r_squared}
        columns = list(zip(predicted.unbind(1), y.unbind(1), strict=True))
        return means | {name: sum(by(*pair) for pair in columns) / len(columns) for name, by in measures.items()}
