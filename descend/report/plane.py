"""Charts with two axes of numbers: the regions that a classifier cuts the plane into, and predicted against true."""

from __future__ import annotations

from typing import Any

import numpy as np

from descend.web.axes import BOTTOM, LEFT, RIGHT, TOP, Axis
from descend.web.chart import Series, draw_chart, draw_over, name_series
from descend.web.markup import Html, html
from descend.web.palette import LIGHT, read_colour
from descend.web.pixels import encode_png

COLOURS = 255 * np.array([read_colour(colour) for colour in LIGHT])
SIZE = (560, 520)
SHADE = 110  # opacity, of 255, where the classifier is sure


def draw_regions(content: dict[str, Any]) -> Html:
    """{"x": [lo, hi], "y": [lo, hi], "winner": class numbers, "lead": 0..1, "points": {class: pairs}, "labels": [x, y]}

    `winner` and `lead` are matrices whose first row is the lowest y; `points` are in the order of the classes.
    """
    winner, lead = np.asarray(content["winner"]), np.asarray(content["lead"], dtype=float)
    if winner.ndim != 2 or winner.shape != lead.shape:
        raise ValueError(f"winner {winner.shape} and lead {lead.shape} must be two matrices of one shape")
    width, height = SIZE
    (left, right), (low, high) = content["x"], content["y"]
    across, up = Axis(left, right, LEFT, width - RIGHT), Axis(low, high, height - BOTTOM, TOP)
    opacity = lead.clip(0, 1)[..., None] * SHADE
    pixels = np.concatenate([COLOURS[winner % len(COLOURS)], opacity], -1).round().astype(np.uint8)[::-1]
    back = html(
        '<image x="{}" y="{}" width="{}" height="{}" preserveAspectRatio="none" href="{}"/>',
        across.start,
        up.end,
        across.end - across.start,
        up.start - up.end,
        encode_png(np.ascontiguousarray(pixels)),
    )
    series = [
        Series(str(name), [float(p[0]) for p in cloud], [float(p[1]) for p in cloud], "dots", i % len(COLOURS))
        for i, (name, cloud) in enumerate(content["points"].items())
    ]
    first, second = (str(name) for name in content.get("labels", ("", "")))
    drawn = draw_over(series, across, up, SIZE, (first, second), back=back)
    return html('{}<div class="square">{}</div>', name_series(series), drawn)


def draw_fit(content: dict[str, Any]) -> Html:
    """{"true": numbers, "predicted": numbers, "name": what they are}: on the diagonal an answer is right."""
    true, predicted = [float(v) for v in content["true"]], [float(v) for v in content["predicted"]]
    if len(true) != len(predicted) or not true:
        raise ValueError(f"{len(true)} true and {len(predicted)} predicted values")
    ends = [min(true + predicted), max(true + predicted)]
    series = [Series("records", true, predicted, "dots", 0), Series("predicted = true", ends, ends, "line", 1)]
    name = str(content.get("name", ""))
    drawn = draw_chart(series, SIZE, (f"true {name}".strip(), f"predicted {name}".strip()), scale="equal")
    return html('<div class="square">{}</div>', drawn)
