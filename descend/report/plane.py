"""Pictures with two axes of numbers: the regions that a classifier cuts the plane into, and predicted against true."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from descend.report.heat import png
from descend.report.svg import Axis, Series, chart, draw, grid

COLOURS = np.array([[43, 108, 216], [214, 104, 32], [35, 147, 107], [139, 79, 201], [194, 55, 122], [107, 114, 128]])
SIZE = (560, 520)
SHADE = 110  # opacity, of 255, where the classifier is sure


def regions(content: dict[str, Any]) -> str:
    """{"x": [lo, hi], "y": [lo, hi], "winner": class numbers, "lead": 0..1, "points": {class: pairs}, "labels": [x, y]}

    `winner` and `lead` are matrices whose first row is the lowest y; `points` are in the order of the classes.
    """
    winner, lead = np.asarray(content["winner"]), np.asarray(content["lead"], dtype=float)
    if winner.ndim != 2 or winner.shape != lead.shape:
        raise ValueError(f"winner {winner.shape} and lead {lead.shape} must be two matrices of one shape")
    width, height = SIZE
    (left, right), (low, high) = content["x"], content["y"]
    across, up = Axis(left, right, 52, width - 14), Axis(low, high, height - 34, 12)
    opacity = lead.clip(0, 1)[..., None] * SHADE
    pixels = np.concatenate([COLOURS[winner % len(COLOURS)], opacity], -1).round().astype(np.uint8)[::-1]
    back = (
        f'<image x="{across.start}" y="{up.end}" width="{across.end - across.start}" height="{up.start - up.end}"'
        f' preserveAspectRatio="none" href="{png(np.ascontiguousarray(pixels))}"/>'
    )
    series = [
        Series(str(name), [float(p[0]) for p in cloud], [float(p[1]) for p in cloud], "dots", i % len(COLOURS))
        for i, (name, cloud) in enumerate(content["points"].items())
    ]
    names = [str(name) for name in content.get("labels", ("", ""))]
    words = (
        f'<text class="name" x="{width - 14}" y="{height - 4}" text-anchor="end">{escape(names[0])}</text>'
        f'<text class="name" x="58" y="24">{escape(names[1])}</text>'
    )
    drawn = grid(across, up, 6, 6) + "".join(draw(s, across, up) for s in series)
    svg = f'<svg class="chart" viewBox="0 0 {width} {height}" role="img">{back}{drawn}{words}</svg>'
    keys = "".join(f'<span class="c{s.colour}"><i></i>{escape(s.label)}</span>' for s in series)
    return f'<p class="legend">{keys}</p><div class="square">{svg}</div>'


def against(content: dict[str, Any]) -> str:
    """{"true": numbers, "predicted": numbers, "name": what they are}: on the diagonal an answer is right."""
    true, predicted = [float(v) for v in content["true"]], [float(v) for v in content["predicted"]]
    if len(true) != len(predicted) or not true:
        raise ValueError(f"{len(true)} true and {len(predicted)} predicted values")
    ends = [min(true + predicted), max(true + predicted)]
    series = [Series("records", true, predicted, "dots", 0), Series("predicted = true", ends, ends, "line", 1)]
    name = str(content.get("name", ""))
    drawn = chart(series, SIZE, (f"true {name}".strip(), f"predicted {name}".strip()), scale="equal")
    return f'<div class="square">{drawn}</div>'
