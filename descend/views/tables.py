"""What a model of a table shows: predictions beside the truth, decision regions, classes, and how columns were read."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import torch
from torch import Tensor, nn

from descend.contracts import Exhibit
from descend.data.tables.columns import Category, Quantity
from descend.data.tables.dates import Elapsed, Moment
from descend.data.tables.scaling import Whiten
from descend.data.tables.source import TableSplits
from descend.metrics.regression import mean_absolute_error, r_squared, root_mean_squared_error
from descend.views.classes import show_classification

CELLS = 160  # of an image of regions, in each direction


def show_table(model: nn.Module, splits: TableSplits) -> list[Exhibit]:
    """Predictions beside the truth, regions where there is a plane, and how the columns were read."""
    target, valid = splits.columns.target, splits.valid
    z = predict_rows(model, valid.x)
    if not target.labels:
        return [show_fit(z[:, 0], splits), show_columns(splits)]
    p = z.softmax(dim=-1)
    shown = show_classification(p, valid.y, target.labels, "records")
    if len(splits.columns.inputs) > 1:
        shown.append(show_regions(model, splits))
    if len(splits.columns.inputs) == len(target.labels) == 2:
        clouds = {label: z[valid.y == k].tolist() for k, label in enumerate(target.labels)}
        note = "The logits of the same records: the diagonal separates the classes."
        shown.append(Exhibit("points", "Logits", clouds, note))
    return [*shown, show_columns(splits)]


def predict_rows(model: nn.Module, x: Tensor) -> Tensor:
    """The model's outputs for any number of rows, on the CPU."""
    where = next(model.parameters()).device
    return torch.cat([model(part.to(where)).cpu() for part in x.split(4096)])


def show_fit(z: Tensor, splits: TableSplits) -> Exhibit:
    """Predicted against true, in the target's own unit, with its errors."""
    target, y = splits.columns.target, splits.valid.y
    true, predicted = (target.mean + target.std * part.double() for part in (y, z))
    errors = f"MAE {mean_absolute_error(predicted, true):.4g}, RMSE {root_mean_squared_error(predicted, true):.4g}"
    note = f"Validation records, in the unit of {target.name}: {errors}; R² {r_squared(predicted, true):.4f}."
    content = {"true": true.tolist(), "predicted": predicted.tolist(), "name": target.name}
    return Exhibit("against", "Predicted against true", content, note)


def show_regions(model: nn.Module, splits: TableSplits) -> Exhibit:
    """The class that wins at each point of the plane: of the two inputs, or of the first two principal components."""
    x, labels, columns = splits.valid.x, splits.columns.target.labels, splits.columns
    two = len(columns.inputs) == 2
    if two:
        flat, names = x, columns.inputs
        note = "Standardized inputs; paler where the model is less sure. Dots are validation records."
    else:
        # The rows in the plane, and the plane's points as rows: V and its transpose.
        main = Whiten.fit(splits.train.x, "train", keep=2)
        flat, names = (x - main.mean) @ main.components, ["first principal component", "second"]
        note = "A cut through the inputs along the training records' principal components; dots are validation records."
    lo, hi, points = lay_cells(flat)
    p = predict_rows(model, points if two else points @ main.components.T + main.mean).softmax(dim=-1)
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


def lay_cells(flat: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Two corners of a plane with some air around points (n, 2), and its cells (CELLS², 2), the lowest row first."""
    lo, hi = flat.amin(dim=0), flat.amax(dim=0)
    air = 0.08 * (hi - lo).clamp(min=1e-6)
    lo, hi = lo - air, hi + air
    lines = [torch.linspace(float(lo[j]), float(hi[j]), CELLS) for j in (0, 1)]
    up, across = torch.meshgrid(lines[1], lines[0], indexing="ij")
    return lo, hi, torch.stack([across, up], -1).reshape(-1, 2)


def describe_spread(column: Quantity | Moment | Elapsed) -> str:
    """Mean and standard deviation, a date as a date."""
    if column.kind != "date":
        return f"{column.mean:.4g} ± {column.std:.4g}"
    try:
        return f"{datetime(1970, 1, 1) + timedelta(days=column.mean):%Y-%m-%d} ± {column.std:.4g} days"
    except OverflowError:
        return f"{column.mean:.4g} ± {column.std:.4g} days since 1970"


def show_columns(splits: TableSplits) -> Exhibit:
    """How each column was read."""
    rows: list[list[Any]] = []
    for column in splits.columns.columns:
        if isinstance(column, Category):
            rows.append([column.name, "category", len(column.inputs), ", ".join(column.values)[:80]])
        else:
            gaps = "; missing values become the median" if column.gaps else ""
            rows.append([column.name, column.kind, len(column.inputs), f"{describe_spread(column)}{gaps}"])
    rows += [[name, "not used", 0, why] for name, why in splits.left_out.items()]
    content = {"columns": ["column", "type", "inputs", "training records"], "rows": rows}
    return Exhibit("table", "Input columns", content)
