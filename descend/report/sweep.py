"""The curve of the learning-rate finder: in the terminal, on a page, as a figure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from descend.web.chart import Mark, Series, draw_log_chart, name_series
from descend.web.markup import Html
from descend.web.page import make_page
from descend.web.parts import make_card, make_figures, make_header

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from descend.engine.lr_range import Curve

BLOCKS, PLAIN = " ▁▂▃▄▅▆▇█", " .,-~=+*#"


def count_visible(curve: Curve) -> int:
    """How many points to draw: up to where the smoothed loss stands half its fall above its start."""
    first, lowest = curve.smoothed[0], min(curve.smoothed)
    top = first + 0.5 * max(first - lowest, 0.05 * abs(first))
    after = curve.smoothed.index(lowest)
    over = [i for i, value in enumerate(curve.smoothed) if i > after and value > top]
    return over[0] + 1 if over else len(curve.smoothed)


def draw_spark(curve: Curve, width: int = 64, unicode: bool = True) -> str:
    """The smoothed loss over log η in one line of blocks, an arrow below the suggestion, and the rates at the ends."""
    levels = BLOCKS if unicode else PLAIN
    n = count_visible(curve)
    width = min(width, n)
    at = [round(i * (n - 1) / max(width - 1, 1)) for i in range(width)]
    values = [curve.smoothed[i] for i in at]
    lo, hi = min(values), max(values)
    height = [round((v - lo) / (hi - lo or 1) * (len(levels) - 2)) + 1 for v in values]
    ends = f"{curve.rates[0]:.0e}", f"{curve.rates[n - 1]:.1e}"
    lines = ["".join(levels[h] for h in height)]
    if curve.suggestion is not None:
        apart = [abs(math.log(curve.rates[i] / curve.suggestion)) for i in at]
        lines.append(" " * apart.index(min(apart)) + "^")
    lines.append(f"{ends[0]}{ends[1]:>{max(width - len(ends[0]), len(ends[1]) + 1)}}")
    return "\n".join(lines)


def make_sweep_page(name: str, curve: Curve) -> Html:
    """A page with the curve and the points that the rule reads from it."""
    n = count_visible(curve)
    x, smoothed = curve.rates[:n], curve.smoothed[:n]
    raw = [min(loss, max(smoothed)) for loss in curve.losses[:n]]  # a single high batch must not flatten the rest
    series = [Series("loss", x, raw, "faint", 0), Series("smoothed loss", x, smoothed, "line", 0)]
    said = "The loss while the learning rate grows from batch to batch. The suggestion is the smaller of two: where the"
    said += " smoothed loss falls fastest, and a tenth of the rate at which it is lowest."
    found = ((curve.suggestion, "suggested learning rate"), (curve.steepest, "steepest"), (curve.turn, "lowest loss"))
    drawn = draw_log_chart(series, (1000, 360), ("learning rate", "loss"), mark_suggestion(curve))
    return make_page(
        f"{name}: learning rate",
        make_header(f"{name}: learning-rate finder", said),
        make_figures([("none" if value is None else f"{value:.3g}", "", what) for value, what in found]),
        make_card("Loss against the learning rate", name_series(series), drawn),
    )


def mark_suggestion(curve: Curve) -> list[Mark]:
    """The suggestion, on the smoothed curve."""
    if curve.suggestion is None:
        return []
    near = min(range(len(curve.rates)), key=lambda i: abs(math.log(curve.rates[i] / (curve.suggestion or 1.0))))
    return [(curve.rates[near], curve.smoothed[near], f"{curve.suggestion:.3g}")]


def draw_figure(name: str, curve: Curve) -> Figure:
    """The same as a figure."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(8, 4), layout="constrained")
    axes = drawn.subplots()
    n = count_visible(curve)
    axes.plot(curve.rates[:n], curve.losses[:n], color="#2b6cd8", lw=0.8, alpha=0.35)
    axes.plot(curve.rates[:n], curve.smoothed[:n], color="#2b6cd8", lw=2, label="smoothed loss")
    if curve.suggestion is not None:
        axes.axvline(curve.suggestion, color="#23936b", ls="--", label=f"suggested: {curve.suggestion:.3g}")
    low, high = min(curve.smoothed[:n]), max(curve.smoothed[:n])
    axes.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low) or None)
    axes.set_xscale("log")
    axes.set_xlabel("learning rate")
    axes.set_ylabel("loss")
    axes.set_title(name, loc="left", fontweight="bold", fontsize=11)
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return drawn
