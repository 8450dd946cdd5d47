"""Charts as inline SVG: lines and points over two axes. Colours are classes, so that the page chooses them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from descend.web.axes import BOTTOM, LEFT, RIGHT, TOP, Axis, draw_grid, fit_axes, name_axes, pad_limits
from descend.web.markup import Html, html, join
from descend.web.parts import make_legend

HOVER = 240  # points of a line that answer to the mouse
BUCKETS = 360  # columns into which a long raw line is gathered, each kept as its lowest and highest value
WIDE = 600  # pixels above which a chart scrolls on a narrow screen
DOTS = {"points": 3.2, "dots": 2.2, "spots": 3.8}  # radius
EMPTY = Html('<p class="empty">nothing was measured</p>')

Mark = tuple[float, float, str]
"""One point to name: x, y and what is written beside it."""


@dataclass(frozen=True)
class Series:
    """A named line ("line", "faint") or cloud ("points", "dots", "spots"); `colour` numbers the palette of the page."""

    label: str
    x: list[float]
    y: list[float]
    form: str = "line"
    colour: int = 0

    def finite(self) -> list[tuple[float, float]]:
        """The points that are numbers."""
        return [(x, y) for x, y in zip(self.x, self.y, strict=True) if math.isfinite(x) and math.isfinite(y)]


def draw_chart(
    series: list[Series],
    size: tuple[int, int] = (980, 320),
    labels: tuple[str, str] = ("step", ""),
    mark: Mark | None = None,
    scale: str = "even",
) -> Html:
    """Lines and points with axes, grid and what the mouse needs; the scales are those of `fit_axes`."""
    points = [p for s in series for p in s.finite()]
    if not points:
        return EMPTY
    across, up = fit_axes(points, size, scale)
    return draw_over(series, across, up, size, labels, [mark] if mark else [])


def draw_log_chart(
    series: list[Series],
    size: tuple[int, int] = (980, 320),
    labels: tuple[str, str] = ("", ""),
    marks: Iterable[Mark] = (),
) -> Html:
    """The same with the axis across by orders of magnitude: a learning rate."""
    xs = [x for s in series for x, _ in s.finite()]
    if not xs:
        return EMPTY
    across = Axis(min(xs) / 1.1, max(xs) * 1.1, LEFT, size[0] - RIGHT, log=True)
    return draw_over(series, across, fit_up(series, size), size, labels, marks)


def draw_choices(
    series: list[Series],
    places: tuple[str, ...],
    size: tuple[int, int] = (980, 320),
    labels: tuple[str, str] = ("", ""),
    marks: Iterable[Mark] = (),
) -> Html:
    """The same over named places 0, 1, 2, …: a choice among words."""
    if not any(s.finite() for s in series):
        return EMPTY
    across = Axis(-0.5, len(places) - 0.5, LEFT, size[0] - RIGHT, places=places)
    return draw_over(series, across, fit_up(series, size), size, labels, marks)


def fit_up(series: list[Series], size: tuple[int, int]) -> Axis:
    return Axis(*pad_limits([y for s in series for _, y in s.finite()]), size[1] - BOTTOM, TOP)


def draw_over(
    series: list[Series],
    across: Axis,
    up: Axis,
    size: tuple[int, int],
    labels: tuple[str, str],
    marks: Iterable[Mark] = (),
    back: Html | None = None,
) -> Html:
    """The series over given axes, in front of `back`."""
    width, height = size
    parts: list[Html | None] = [back, draw_grid(across, up, max(3, width // 85), max(3, min(8, height // 45)))]
    parts += [draw_series(s, across, up) for s in series]
    parts += [draw_mark(mark, across, up, width) for mark in marks]
    parts += [name_axes(size, *labels, log=up.log)]
    hover = [trace_points(s, across, up) for s in series if s.form in ("line", "points")]
    data = html(' data-hover="{}"', json.dumps(hover, separators=(",", ":"))) if hover else None
    frame = '<svg class="chart" viewBox="0 0 {} {}" role="img"{}>{}</svg>'
    svg = html(frame, width, height, data, join(parts))
    return html('<div class="big">{}</div>', svg) if width > WIDE else svg


def draw_series(series: Series, across: Axis, up: Axis) -> Html:
    """One line or cloud."""
    placed = [(across.at(x), up.at(y)) for x, y in series.finite()]
    if series.form in DOTS:
        dots = [html('<circle cx="{:.1f}" cy="{:.1f}" r="{}"/>', x, y, DOTS[series.form]) for x, y in placed]
        thread = draw_path(placed, f"thread c{series.colour}") if series.form == "points" else None
        form = "dots" if series.form == "spots" else series.form
        return html('{}<g class="{} c{}">{}</g>', thread, form, series.colour, dots)
    if len(placed) == 1:
        return html('<g class="points c{}"><circle cx="{:.1f}" cy="{:.1f}" r="3"/></g>', series.colour, *placed[0])
    return draw_path(gather_peaks(placed), f"{series.form} c{series.colour}")


def draw_path(placed: Iterable[tuple[float, float]], style: str) -> Html:
    return html('<polyline class="{}" points="{}"/>', style, " ".join(f"{x:.1f},{y:.1f}" for x, y in placed))


def gather_peaks(placed: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """A long line gathered into columns: no peak is lost, no pixel is drawn twice."""
    if len(placed) <= 2 * BUCKETS:
        return placed
    size = len(placed) / BUCKETS
    kept: list[tuple[float, float]] = []
    for i in range(BUCKETS):
        column = placed[round(i * size) : round((i + 1) * size)]
        kept += sorted({min(column, key=lambda p: p[1]), max(column, key=lambda p: p[1])})
    return kept


def draw_mark(mark: Mark, across: Axis, up: Axis, width: int) -> Html:
    """A ring and a word."""
    x, y = across.at(mark[0]), up.at(mark[1])
    side, dx = ("end", -10) if x > width / 2 else ("start", 10)
    above = -10 if y - 20 > up.end else 20
    ring = html('<circle class="mark" cx="{:.1f}" cy="{:.1f}" r="6"/>', x, y)
    place = x + dx, y + above, side, mark[2]
    return html('{}<text class="mark" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>', ring, *place)


def trace_points(series: Series, across: Axis, up: Axis) -> dict[str, object]:
    """What the mouse shows: pixels and values of some points of the series."""
    points = series.finite()
    every = max(1, math.ceil(len(points) / HOVER))
    some = points[::every] + (points[-1:] if (len(points) - 1) % every else [])
    return {
        "label": series.label,
        "colour": series.colour,
        "x": [float(f"{x:.7g}") for x, _ in some],
        "y": [float(f"{y:.4g}") for _, y in some],
        "px": [round(across.at(x), 1) for x, _ in some],
        "py": [round(up.at(y), 1) for _, y in some],
    }


def name_series(series: list[Series]) -> Html:
    """The legend of a chart; a faint line belongs to the one over it."""
    return make_legend((s.label, s.colour) for s in series if s.form != "faint")


def smooth(values: list[float]) -> list[float]:
    """Moving mean over a 25th of the line, centred, so that nothing lags.

    At the start, where a curve is steep, the window shrinks; at the end, where it is flat, it looks back only.
    """
    half = len(values) // 50
    totals = [0.0]
    for value in values:
        totals.append(totals[-1] + value)
    means = []
    for i in range(len(values)):
        back = min(half, i)
        ahead = min(back, len(values) - 1 - i)
        means.append((totals[i + ahead + 1] - totals[i - back]) / (back + ahead + 1))
    return means
