"""Table recipes: records with columns of any type, a target that is a class or a number, and an MLP in between."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch

from descend.contracts import Batch, Stream
from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.streams.balance import Balanced, TwoPhases, class_weights
from descend.data.streams.shards import process
from descend.data.tables.columns import Columns
from descend.data.tables.embedded import SKLEARN
from descend.data.tables.source import EncodedTable, Table, TableSplits, read_labelled
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.recipe import Judged, Recipe, describe_batch, fit_batch, micro_batch
from descend.models import make_model
from descend.models.mlp import MLPConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.ranges import Fraction
from descend.tasks.classify import Classify
from descend.tasks.regress import Regress
from descend.tasks.weighted import ClassifyWeighted
from descend.views.tables import show_table

SHARES = 8  # classes whose shares are found in one line


@dataclass(frozen=True)
class ClassBalance:
    """How to handle rare classes."""

    by: Literal["none", "weights", "batches"] = "none"
    """weights in the loss, or batches with equal shares of all classes."""
    calibrate: Fraction = 0.1
    """After balanced batches: the last share of the steps, on the true frequencies."""


@dataclass(frozen=True)
class LearnTable(Recipe):
    """An MLP on a table. With --batch 0 a step sees all the training records."""

    model: Any = field(default_factory=MLPConfig)
    data: Table = field(default_factory=Table)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)
    balance: ClassBalance = field(default_factory=ClassBalance)

    def build(self) -> Parts:
        splits = self.data.read()
        columns, train = splits.columns, splits.train
        labels = columns.target.labels
        if self.balance.by != "none" and not labels:
            raise Mistake(f"--balance.by {self.balance.by}: {columns.target.name!r} is a number, it has no classes")
        batch = fit_batch(self.loop, len(train.y))
        torch.manual_seed(self.loop.seed)
        model = make_model(fit_sizes(self.model, len(columns.inputs), len(labels) or 1))
        task: Classify | Regress = Classify(model) if labels else Regress(model, columns.target.std)
        if self.balance.by == "weights":
            task = ClassifyWeighted(model, class_weights(train.y, len(labels)))
        return Parts(
            task=task,
            model=model,
            stream=self.stream(train, batch),
            valid=InOrder(splits.valid.arrays()),
            optims={"model": self.optim},
            unit="records",
            units_per_batch=batch,
            facts=describe_table(self.data, splits) | describe_batch(self.loop, batch),
            save_extra=columns.save,
            exhibits=lambda: show_table(model, splits),
        )

    def stream(self, train: EncodedTable, batch: int) -> Stream:
        """Shuffled training records; or balanced batches, and at the end the data as it is."""
        micro, seed = micro_batch(self.loop, batch), self.loop.seed
        last = batch if self.data.drop_last else 0
        plain = Shuffled(train.arrays(), micro, seed, *process(), drop_last=last)
        if self.balance.by != "batches":
            return plain
        if last:
            raise Mistake("--data.drop-last: a balanced epoch is one of the largest class; use --balance.by weights")
        if not 0 <= self.balance.calibrate < 1:
            raise Mistake(f"--balance.calibrate {self.balance.calibrate}: must be at least 0 and below 1")
        balanced = round(self.loop.steps * (1 - self.balance.calibrate)) * self.loop.accumulate
        return TwoPhases(Balanced(train.arrays(), micro, seed, *process()), plain, balanced)

    def packages(self) -> tuple[str, ...]:
        """scikit-learn's tables."""
        return ("scikit-learn",) if not self.data.path and self.data.embedded in SKLEARN else ()

    def test(self) -> Iterable[Batch]:
        """The test records."""
        return InOrder(self.data.read().test.arrays())

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """Every record of a table that has the columns of the training data, the target among them."""
        columns = Columns.read(folder)
        task = Classify(model) if columns.target.labels else Regress(model, columns.target.std)
        return Judged(task, InOrder(read_labelled(path, columns).arrays()))


def fit_sizes(config: Any, inputs: int, outputs: int) -> Any:
    """The config with the sizes that follow from the table."""
    default = type(config)()
    for name, size in (("inputs", inputs), ("outputs", outputs)):
        if getattr(config, name) not in (getattr(default, name), size):
            raise Mistake(f"--model.{name}: the table gives {size}; leave this flag out")
    if isinstance(config, MLPConfig) and config.head != "identity":
        raise Mistake(f"--model.head {config.head}: the loss takes plain outputs; leave this flag out")
    return replace(config, inputs=inputs, outputs=outputs)


def describe_table(data: Table, splits: TableSplits) -> dict[str, Any]:
    """What was found in the table."""
    target, y = splits.columns.target, splits.train.y
    found: dict[str, Any] = {
        "data": data.path or f"embedded table {data.embedded}",
        "predicts": f"{target.name} ({f'{len(target.labels)} classes' if target.labels else 'a ' + target.kind})",
        "training records": len(y),
        "validation records": len(splits.valid.y),
        "test records": len(splits.test.y),
        "columns": len(splits.columns.columns),
        "inputs": len(splits.columns.inputs),
    }
    found |= splits.leaks
    if splits.left_out:
        found["left out"] = "; ".join(f"{name} ({why})" for name, why in splits.left_out.items())
    if target.labels:
        share = torch.bincount(y, minlength=len(target.labels)) / len(y)
        order = share.argsort(descending=True, stable=True).tolist()
        found["class shares"] = ", ".join(f"{target.labels[k]} {float(share[k]):.1%}" for k in order[:SHARES])
        found["always the largest class"] = f"{float(share.max()):.1%} right"
    else:
        found["target"] = target.name
        found["mean and deviation"] = f"{target.mean:.6g} ± {target.std:.6g}"
    return found
