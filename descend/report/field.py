"""Something over the plane: a density as shades, a vector field as arrows, points in front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from descend.report.plane import SIZE
from descend.web.axes import BOTTOM, LEFT, RIGHT, TOP, Axis
from descend.web.chart import Series, draw_over
from descend.web.markup import Html, html, join
from descend.web.pixels import encode_png, tint

HEAD = 0.35  # length of an arrow's head, as a share of the arrow


def draw_plane(content: dict[str, Any]) -> Html:
    """{"x": [lo, hi], "y": [lo, hi], "values": matrix of 0..1, "arrows": [[x, y, dx, dy], ..], "points": {name: pairs}}

    The first row of `values` is the lowest y. Each of the last three may be left out.
    """
    width, height = SIZE
    (left, right), (low, high) = content["x"], content["y"]
    across, up = Axis(left, right, LEFT, width - RIGHT), Axis(low, high, height - BOTTOM, TOP)
    back = [shade(np.asarray(content["values"], dtype=float), across, up)] if "values" in content else []
    back += [draw_arrow(arrow, across, up) for arrow in content.get("arrows", ())]
    series = [
        Series(str(name), [float(p[0]) for p in cloud], [float(p[1]) for p in cloud], "dots", i)
        for i, (name, cloud) in enumerate(content.get("points", {}).items())
    ]
    return html('<div class="square">{}</div>', draw_over(series, across, up, SIZE, ("", ""), back=join(back)))


def shade(values: np.ndarray, across: Axis, up: Axis) -> Html:
    """The matrix as an image between the axes."""
    if values.ndim != 2:
        raise ValueError(f"values are a matrix, not of shape {values.shape}")
    return html(
        '<image x="{}" y="{}" width="{}" height="{}" preserveAspectRatio="none" href="{}"/>',
        across.start,
        up.end,
        across.end - across.start,
        up.start - up.end,
        encode_png(np.ascontiguousarray(tint(np.nan_to_num(values).clip(0, 1))[::-1])),
    )


def draw_arrow(arrow: Sequence[float], across: Axis, up: Axis) -> Html:
    """x, y, dx, dy: from (x, y) along (dx, dy), a shaft and a head of two strokes."""
    x, y, dx, dy = map(float, arrow)
    start, end = np.array([across.at(x), up.at(y)]), np.array([across.at(x + dx), up.at(y + dy)])
    along = (start - end) * HEAD
    side = np.array([-along[1], along[0]]) * 0.6
    corners = [start, end, end + along + side, end, end + along - side]
    return html(
        '<polyline points="{}" fill="none" stroke="currentColor" stroke-width="1" stroke-opacity="0.7"/>',
        " ".join(f"{a:.1f},{b:.1f}" for a, b in corners),
    )
