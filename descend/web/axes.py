"""Axes of a chart: from values to pixels, with round ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from descend.web.markup import Html, html, join

LEFT, RIGHT, BOTTOM, TOP = 52, 14, 34, 12  # margins in pixels


@dataclass(frozen=True)
class Axis:
    """From values lo..hi to pixels start..end, evenly or by orders of magnitude."""

    lo: float
    hi: float
    start: float
    end: float
    log: bool = False
    places: tuple[str, ...] = ()
    """Names at 0, 1, 2, … instead of numbers."""
    whole: bool = False
    """Only whole numbers are ticks: steps, trials."""

    def at(self, value: float) -> float:
        """The pixel of a value."""
        lo, hi, v = (math.log(u) if self.log else u for u in (self.lo, self.hi, value))
        return self.start + (self.end - self.start) * (v - lo) / (hi - lo)

    def ticks(self, wanted: int) -> list[tuple[float, str]]:
        """Round values and their labels."""
        if self.places:
            return [(float(i), name) for i, name in enumerate(self.places)]
        if self.log:
            powers = range(math.floor(math.log10(self.lo)), math.ceil(math.log10(self.hi)) + 1)
            digits = (1,) if len(powers) > wanted else (1, 2, 5)
            values = [d * 10.0**p for p in powers for d in digits if self.lo <= d * 10.0**p <= self.hi]
            return [(v, format_tick(v, v)) for v in values]
        step = round_step((self.hi - self.lo) / wanted)
        step = max(step, 1.0) if self.whole else step
        first = math.ceil(self.lo / step - 1e-9)
        values = [i * step for i in range(first, math.floor(self.hi / step + 1e-9) + 1)]
        return [(v, format_tick(v, step)) for v in values]


def round_step(step: float) -> float:
    """The nearest of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return min((d * power for d in (1, 2, 5, 10)), key=lambda candidate: abs(math.log(candidate / step)))


def format_tick(value: float, step: float) -> str:
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


def pad_limits(values: list[float], spread: float = 0.06) -> tuple[float, float]:
    """Lowest and highest value with some air; never equal."""
    lo, hi = min(values), max(values)
    air = spread * (hi - lo) if hi > lo else 0.05 * abs(hi) or 0.5
    return lo - air, hi + air


def fit_axes(points: list[tuple[float, float]], size: tuple[int, int], scale: str) -> tuple[Axis, Axis]:
    """Both axes of a chart around its points.

    "even" is linear. "log" is by orders of magnitude where all values are positive; "auto" is that when they span a
    factor of 30, which hides the end of a curve. "equal" gives both directions one scale, so that a circle stays round.
    """
    xs, ys = [x for x, _ in points], [y for _, y in points]
    log = min(ys) > 0 and (scale == "log" or (scale == "auto" and max(ys) / min(ys) > 30))
    x_lo, x_hi = pad_limits(xs, 0.05 if scale == "equal" else 0.0)
    y_lo, y_hi = (min(ys) / 1.15, max(ys) * 1.15) if log else pad_limits(ys)
    left, right, bottom, top = LEFT, size[0] - RIGHT, size[1] - BOTTOM, TOP
    if scale == "equal":
        pixel = max((x_hi - x_lo) / (right - left), (y_hi - y_lo) / (bottom - top))
        x_mid, y_mid = (x_lo + x_hi) / 2, (y_lo + y_hi) / 2
        x_half, y_half = pixel * (right - left) / 2, pixel * (bottom - top) / 2
        x_lo, x_hi, y_lo, y_hi = x_mid - x_half, x_mid + x_half, y_mid - y_half, y_mid + y_half
    elif 0 < x_lo < 0.15 * x_hi:
        x_lo = 0.0  # steps begin at 1, or at the first evaluation: let the axis begin at 0
    whole = all(float(x).is_integer() for x in xs)
    return Axis(x_lo, x_hi, left, right, whole=whole), Axis(y_lo, y_hi, bottom, top, log)


def draw_grid(across: Axis, up: Axis, columns: int, rows: int) -> Html:
    """Horizontal lines with their values, the axis, and the ticks below it."""
    parts = []
    for value, text in up.ticks(rows):
        y = up.at(value)
        parts.append(
            html('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>', across.start, across.end, y, y)
        )
        parts.append(html('<text x="{}" y="{:.1f}" dy=".32em" text-anchor="end">{}</text>', across.start - 8, y, text))
    for value, text in across.ticks(columns):
        parts.append(
            html('<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>', across.at(value), up.start + 17, text)
        )
    ends = across.start, across.end, up.start, up.start
    return join([*parts, html('<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>', *ends)])


def name_axes(size: tuple[int, int], across: str, up: str, log: bool = False) -> Html:
    """What the axes show; that one goes by orders of magnitude stands where most curves are low."""
    right = size[0] - RIGHT
    parts = [html('<text class="name" x="{}" y="{}" text-anchor="end">{}</text>', right, size[1] - 4, across)]
    parts += [html('<text class="name" x="{}" y="22">{}</text>', LEFT + 6, up)] if up else []
    parts += [html('<text class="name" x="{}" y="22" text-anchor="end">(log scale)</text>', right - 4)] if log else []
    return join(parts)
