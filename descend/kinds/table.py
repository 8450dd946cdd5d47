"""Table recipes: records with columns of any type, a target that is a class or a number, and an MLP in between."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.streams.balance import Balanced, TwoPhases, class_weights
from descend.data.streams.shards import process
from descend.data.tables.columns import Category, Columns
from descend.data.tables.scaling import Whiten
from descend.data.tables.source import Encoded, Splits, Table, read_csv
from descend.engine.protocol import Batch, Exhibit, Parts, Stream
from descend.errors import Mistake
from descend.kinds.recipe import Recipe, micro_batch
from descend.metrics.classification import confusion
from descend.models import load
from descend.models.mlp import MLP, MLPConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.classify import Classify
from descend.tasks.regress import Regress
from descend.tasks.weighted import ClassifyWeighted

CELLS = 160  # of a picture of regions, in each direction
SHARES = 8  # classes whose shares are told in one line


@dataclass(frozen=True)
class Balance:
    """What is done for rare classes."""

    by: Literal["none", "weights", "batches"] = "none"
    """weights in the loss, or batches with equal shares of all classes."""
    calibrate: float = 0.1
    """After balanced batches: the last share of the steps, on the true frequencies."""


@dataclass(frozen=True)
class LearnTable(Recipe):
    """An MLP on a table. With --batch 0 a step sees all the training records."""

    model: MLPConfig = field(default_factory=MLPConfig)
    data: Table = field(default_factory=Table)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)
    balance: Balance = field(default_factory=Balance)

    def build(self) -> Parts:
        splits = self.data.read()
        columns, train = splits.columns, splits.train
        labels = columns.target.labels
        if self.balance.by != "none" and not labels:
            raise Mistake(f"--balance.by {self.balance.by}: {columns.target.name!r} is a number, it has no classes")
        batch = min(self.loop.batch, len(train.y)) or len(train.y)
        torch.manual_seed(self.loop.seed)
        model = MLP(sized(self.model, len(columns.inputs), len(labels) or 1))
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
            facts=facts(self.data, splits),
            save_extra=columns.save,
            exhibits=lambda: look(model, splits),
        )

    def stream(self, train: Encoded, batch: int) -> Stream:
        """Shuffled training records; or balanced batches, and at the end the data as it is."""
        micro, seed = micro_batch(self.loop, batch), self.loop.seed
        plain = Shuffled(train.arrays(), micro, seed, *process())
        if self.balance.by != "batches":
            return plain
        if not 0 <= self.balance.calibrate < 1:
            raise Mistake(f"--balance.calibrate {self.balance.calibrate}: a share from 0 to below 1")
        balanced = round(self.loop.steps * (1 - self.balance.calibrate)) * self.loop.accumulate
        return TwoPhases(Balanced(train.arrays(), micro, seed, *process()), plain, balanced)

    def test(self) -> Iterable[Batch]:
        """The test records."""
        return InOrder(self.data.read().test.arrays())


def sized(config: MLPConfig, inputs: int, outputs: int) -> MLPConfig:
    """The config with the sizes that follow from the table."""
    default = MLPConfig()
    for name, size in (("inputs", inputs), ("outputs", outputs)):
        if getattr(config, name) not in (getattr(default, name), size):
            raise Mistake(f"--model.{name}: the table gives {size}; leave this flag out")
    if config.head != "identity":
        raise Mistake(f"--model.head {config.head}: the loss takes plain outputs; leave this flag out")
    return replace(config, inputs=inputs, outputs=outputs)


def facts(data: Table, splits: Splits) -> dict[str, Any]:
    """What was found in the table."""
    target, y = splits.columns.target, splits.train.y
    told: dict[str, Any] = {
        "data": data.path or f"embedded table {data.embedded}",
        "predicts": f"{target.name} ({f'{len(target.labels)} classes' if target.labels else 'a ' + target.kind})",
        "training records": len(y),
        "validation records": len(splits.valid.y),
        "test records": len(splits.test.y),
        "columns": len(splits.columns.columns),
        "inputs": len(splits.columns.inputs),
    }
    if splits.left_out:
        told["left out"] = "; ".join(f"{name} ({why})" for name, why in splits.left_out.items())
    if target.labels:
        share = torch.bincount(y, minlength=len(target.labels)) / len(y)
        order = share.argsort(descending=True, stable=True).tolist()
        told["class shares"] = ", ".join(f"{target.labels[k]} {float(share[k]):.1%}" for k in order[:SHARES])
        told["always the largest class"] = f"{float(share.max()):.1%} right"
    else:
        told["mean and deviation"] = f"{target.mean:.6g} ± {target.std:.6g}"
    return told


def outputs(model: MLP, x: Tensor) -> Tensor:
    """The model's outputs for inputs of any number, on the CPU."""
    where = next(model.parameters()).device
    return torch.cat([model(part.to(where)).cpu() for part in x.split(4096)])


def look(model: MLP, splits: Splits) -> list[Exhibit]:
    """Answers beside the truth, regions where there is a plane, and how the columns were read."""
    target, valid = splits.columns.target, splits.valid
    z = outputs(model, valid.x)
    table = [columns_table(splits)]
    if not target.labels:
        return [regression(z[:, 0], splits), *table]
    p = z.softmax(dim=-1)
    counts = confusion(p.argmax(dim=-1), valid.y, len(target.labels))
    shown = {"labels": list(target.labels), "counts": counts.tolist()}
    pictures = [Exhibit("confusion", "What is taken for what", shown, "Validation records, best checkpoint.")]
    if len(splits.columns.inputs) > 1:
        pictures.append(plane(model, splits))
    if len(splits.columns.inputs) == len(target.labels) == 2:
        clouds = {label: z[valid.y == k].tolist() for k, label in enumerate(target.labels)}
        note = "The same records as the model puts them out: the diagonal separates the classes."
        pictures.append(Exhibit("points", "Output space", clouds, note))
    return [*pictures, classes_table(p, splits), *table]


def regression(z: Tensor, splits: Splits) -> Exhibit:
    """Predicted against true, in the target's own unit, with R²."""
    target, y = splits.columns.target, splits.valid.y
    left = float((z - y).square().mean() / y.var(correction=0).clamp(min=1e-12))
    content = {
        "true": (target.mean + target.std * y.double()).tolist(),
        "predicted": (target.mean + target.std * z.double()).tolist(),
        "name": target.name,
    }
    return Exhibit("against", "Predicted against true", content, f"Validation records, R² = {1 - left:.4f}.")


def plane(model: MLP, splits: Splits) -> Exhibit:
    """The class that wins at each point of the plane: of the two inputs, or of the two first principal components."""
    x, labels, columns = splits.valid.x, splits.columns.target.labels, splits.columns
    two = len(columns.inputs) == 2
    if two:
        flat, names = x, columns.inputs
        note = "Standardized inputs; the paler, the less sure. Dots are validation records."
    else:
        # The rows in the plane, and the plane's points as rows: V and its transpose.
        main = Whiten.fit(splits.train.x, "train", keep=2)
        flat, names = (x - main.mean) @ main.components, ["first principal component", "second"]
        note = "A cut through the inputs along the training records' main directions; dots are validation records."
    lo, hi = flat.amin(dim=0), flat.amax(dim=0)
    air = 0.08 * (hi - lo).clamp(min=1e-6)
    lo, hi = lo - air, hi + air
    lines = [torch.linspace(float(lo[j]), float(hi[j]), CELLS) for j in (0, 1)]
    up, across = torch.meshgrid(lines[1], lines[0], indexing="ij")
    points = torch.stack([across, up], -1).reshape(-1, 2)
    p = outputs(model, points if two else points @ main.components.T + main.mean).softmax(dim=-1)
    best = p.topk(2, dim=-1)
    content = {
        "x": [float(lo[0]), float(hi[0])],
        "y": [float(lo[1]), float(hi[1])],
        "winner": best.indices[:, 0].view(CELLS, CELLS).tolist(),
        "lead": (best.values[:, 0] - best.values[:, 1]).view(CELLS, CELLS).tolist(),
        "points": {label: flat[splits.valid.y == k].tolist() for k, label in enumerate(labels)},
        "labels": names,
    }
    return Exhibit("regions", "Decision regions", content, note)


def classes_table(p: Tensor, splits: Splits) -> Exhibit:
    """Each class: how frequent it is, how often it is found, and how probable the model holds it on average."""
    y, labels = splits.valid.y, splits.columns.target.labels
    share = torch.bincount(splits.train.y, minlength=len(labels)) / len(splits.train.y)
    rows = []
    for k, label in enumerate(labels):
        of_class = y == k
        found = float((p[of_class].argmax(dim=-1) == k).float().mean()) if of_class.any() else float("nan")
        rows.append([label, int((splits.train.y == k).sum()), float(share[k]), found, float(p[:, k].mean())])
    content = {"columns": ["class", "training records", "share", "found", "mean probability"], "rows": rows}
    return Exhibit(
        "table",
        "Classes",
        content,
        "Found: of the validation records of the class. A mean probability far "
        "from the share means that the outputs are no frequencies.",
    )


def columns_table(splits: Splits) -> Exhibit:
    """How each column was read."""
    rows: list[list[Any]] = []
    for column in splits.columns.columns:
        if isinstance(column, Category):
            rows.append([column.name, "category", len(column.inputs), ", ".join(column.values)[:80]])
        else:
            gaps = "; gaps become the median" if column.gaps else ""
            rows.append([column.name, column.kind, len(column.inputs), f"{column.mean:.4g} ± {column.std:.4g}{gaps}"])
    rows += [[name, "not used", 0, why] for name, why in splits.left_out.items()]
    content = {"columns": ["column", "type", "inputs", "training records"], "rows": rows}
    return Exhibit("table", "How the columns were read", content)


def predict(folder: str | Path, path: str | Path) -> list[dict[str, Any]]:
    """Answers of a trained model for the records of a CSV file, with the columns that were saved beside the weights."""
    folder = Path(folder)
    best = folder / "checkpoints" / "best"
    folder = best if best.is_dir() else folder
    model, columns, records = load(folder), Columns.read(folder), read_csv(path)
    if not isinstance(model, MLP):
        raise Mistake(f"{folder} holds a {type(model).__name__}, which was not trained on a table")
    with torch.no_grad():
        z = outputs(model, columns.encode(records))
    target = columns.target
    if not target.labels:
        return [
            {"line": n, target.name: target.mean + target.std * float(v)}
            for n, v in zip(records.lines, z[:, 0], strict=True)
        ]
    best_class = z.softmax(dim=-1).max(dim=-1)
    return [
        {"line": n, target.name: target.labels[int(k)], "probability": float(v)}
        for n, v, k in zip(records.lines, best_class.values, best_class.indices, strict=True)
    ]
