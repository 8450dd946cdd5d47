"""Charts as inline SVG: lines and points over two axes. Colours are classes, so that the page chooses them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

HOVER = 240  # points of a line that answer to the mouse
BUCKETS = 360  # columns into which a long raw line is gathered, each kept as its lowest and highest value


@dataclass(frozen=True)
class Series:
    """A named line ("line", "faint") or cloud ("points", "dots"); `colour` numbers the palette of the page."""

    label: str
    x: list[float]
    y: list[float]
    form: str = "line"
    colour: int = 0

    def finite(self) -> list[tuple[float, float]]:
        return [(x, y) for x, y in zip(self.x, self.y, strict=True) if math.isfinite(x) and math.isfinite(y)]


@dataclass(frozen=True)
class Axis:
    """From values lo..hi to pixels start..end, evenly or by orders of magnitude."""

    lo: float
    hi: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        lo, hi, v = (math.log(u) if self.log else u for u in (self.lo, self.hi, value))
        return self.start + (self.end - self.start) * (v - lo) / (hi - lo)

    def ticks(self, wanted: int) -> list[tuple[float, str]]:
        """Round values and their labels."""
        if self.log:
            powers = range(math.floor(math.log10(self.lo)), math.ceil(math.log10(self.hi)) + 1)
            digits = (1,) if len(powers) > wanted else (1, 2, 5)
            values = [d * 10.0**p for p in powers for d in digits if self.lo <= d * 10.0**p <= self.hi]
            return [(v, label(v, v)) for v in values]
        step = nice((self.hi - self.lo) / wanted)
        first = math.ceil(self.lo / step - 1e-9)
        values = [i * step for i in range(first, math.floor(self.hi / step + 1e-9) + 1)]
        return [(v, label(v, step)) for v in values]


def nice(step: float) -> float:
    """The nearest of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return min((d * power for d in (1, 2, 5, 10)), key=lambda round_step: abs(math.log(round_step / step)))


def label(value: float, step: float) -> str:
    """A tick label with as many digits as the distance of the ticks asks for."""
    if value == 0:
        return "0"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * size or (abs(value) >= size and step >= size / 10):
            return f"{value / size:.12g}{letter}"
    place = math.floor(math.log10(abs(step)) + 1e-9)
    if abs(value) < 1e-3:
        return f"{value:.{max(1, math.floor(math.log10(abs(value))) - place + 1)}g}".replace("e-0", "e-")
    return f"{value:.{max(0, -place)}f}"


def limits(values: list[float], spread: float = 0.06) -> tuple[float, float]:
    """Lowest and highest value with some air; never equal."""
    lo, hi = min(values), max(values)
    air = spread * (hi - lo) if hi > lo else 0.05 * abs(hi) or 0.5
    return lo - air, hi + air


def chart(
    series: list[Series],
    size: tuple[int, int] = (980, 320),
    labels: tuple[str, str] = ("step", ""),
    mark: tuple[float, float, str] | None = None,
    scale: str = "even",
) -> str:
    """Lines and points with axes, grid and what the mouse needs; `mark` is one point to name."""
    width, height = size
    points = [p for s in series for p in s.finite()]
    if not points:
        return '<p class="empty">nothing was measured</p>'
    across, up = axes(points, size, scale)
    parts = [grid(across, up, max(3, width // 85), max(3, min(8, height // 45)))]
    parts += [f'<text class="name" x="{width - 14}" y="{height - 4}" text-anchor="end">{escape(labels[0])}</text>']
    if labels[1] or up.log:
        named = f"{labels[1]} (log scale)" if up.log else labels[1]
        parts.append(f'<text class="name" x="58" y="22">{escape(named.strip())}</text>')
    parts += [draw(s, across, up) for s in series]
    if mark is not None:
        parts.append(marked(mark, across, up, width))
    hover = [watched(s, across, up) for s in series if s.form in ("line", "points")]
    data = escape(json.dumps(hover, separators=(",", ":")))
    svg = f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" data-hover="{data}">{"".join(parts)}</svg>'
    return f'<div class="big">{svg}</div>' if width > 600 else svg


def axes(points: list[tuple[float, float]], size: tuple[int, int], scale: str) -> tuple[Axis, Axis]:
    """The two axes. Scale "auto" turns to orders of magnitude when the values span a factor of 30, which hides the end
    of a curve; "equal" gives both directions one scale, so that a circle stays round."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    log = scale == "auto" and min(ys) > 0 and max(ys) / min(ys) > 30
    x_lo, x_hi = limits(xs, 0.05 if scale == "equal" else 0.0)
    y_lo, y_hi = (min(ys) / 1.15, max(ys) * 1.15) if log else limits(ys)
    left, right, bottom, top = 52, size[0] - 14, size[1] - 34, 12
    if scale == "equal":
        pixel = max((x_hi - x_lo) / (right - left), (y_hi - y_lo) / (bottom - top))
        x_mid, y_mid = (x_lo + x_hi) / 2, (y_lo + y_hi) / 2
        x_half, y_half = pixel * (right - left) / 2, pixel * (bottom - top) / 2
        x_lo, x_hi, y_lo, y_hi = x_mid - x_half, x_mid + x_half, y_mid - y_half, y_mid + y_half
    elif 0 < x_lo < 0.15 * x_hi:
        x_lo = 0.0  # steps begin at 1, or at the first evaluation: let the axis begin at 0
    return Axis(x_lo, x_hi, left, right), Axis(y_lo, y_hi, bottom, top, log)


def grid(across: Axis, up: Axis, columns: int, rows: int) -> str:
    parts = []
    for value, text in up.ticks(rows):
        y = f"{up.at(value):.1f}"
        parts.append(f'<line class="grid" x1="{across.start}" x2="{across.end}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{across.start - 8}" y="{y}" dy=".32em" text-anchor="end">{text}</text>')
    for value, text in across.ticks(columns):
        parts.append(f'<text x="{across.at(value):.1f}" y="{up.start + 17}" text-anchor="middle">{text}</text>')
    line = f'<line class="axis" x1="{across.start}" x2="{across.end}" y1="{up.start}" y2="{up.start}"/>'
    return "".join(parts) + line


def draw(series: Series, across: Axis, up: Axis) -> str:
    placed = [(across.at(x), up.at(y)) for x, y in series.finite()]
    if series.form in ("points", "dots"):
        radius = 3.2 if series.form == "points" else 2.2
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>' for x, y in placed)
        thread = path(placed, f"thread c{series.colour}") if series.form == "points" else ""
        return f'{thread}<g class="{series.form} c{series.colour}">{dots}</g>'
    if len(placed) == 1:
        return f'<g class="points c{series.colour}"><circle cx="{placed[0][0]:.1f}" cy="{placed[0][1]:.1f}" r="3"/></g>'
    return path(envelope(placed), f"{series.form} c{series.colour}")


def path(placed: Iterable[tuple[float, float]], style: str) -> str:
    return f'<polyline class="{style}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in placed)}"/>'


def envelope(placed: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """A long line gathered into columns: no peak is lost, no pixel is drawn twice."""
    if len(placed) <= 2 * BUCKETS:
        return placed
    size = len(placed) / BUCKETS
    kept = []
    for i in range(BUCKETS):
        column = placed[round(i * size) : round((i + 1) * size)]
        low, high = min(column, key=lambda p: p[1]), max(column, key=lambda p: p[1])
        kept += sorted({low, high})
    return kept


def marked(mark: tuple[float, float, str], across: Axis, up: Axis, width: int) -> str:
    x, y = across.at(mark[0]), up.at(mark[1])
    side, dx = ("end", -10) if x > width / 2 else ("start", 10)
    above = -10 if y - 20 > up.end else 20
    return (
        f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
        f'<text class="mark" x="{x + dx:.1f}" y="{y + above:.1f}" text-anchor="{side}">{escape(mark[2])}</text>'
    )


def watched(series: Series, across: Axis, up: Axis) -> dict[str, object]:
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
