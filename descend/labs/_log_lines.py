"""The picture of a scaling law: measured points over two logarithmic axes, and the lines that were fitted to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#2b6cd8", "#d66820", "#3a9a5b", "#8a4fbf", "#b03a48", "0.45")


class Curve(NamedTuple):
    """Points of one name; `fitted`, if any, is a line over the same x."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    fitted: Sequence[float] = ()


class Panel(NamedTuple):
    """A title, the names of both axes, and what is drawn between them."""

    title: str
    across: str
    up: str
    curves: Sequence[Curve]
    scale: str = "log"
    """Of the vertical axis."""


def draw_panels(panels: Sequence[Panel]) -> Figure:
    """The panels side by side."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(4.6 * len(panels), 3.7), layout="constrained")
    for axes, panel in zip(fig.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        draw_panel(axes, panel)
    return fig


def draw_panel(axes: Axes, panel: Panel) -> None:
    """Dots and lines of one panel."""
    for i, curve in enumerate(panel.curves):
        colour = COLOURS[i % len(COLOURS)]
        axes.plot(curve.x, curve.y, "o" if len(curve.fitted) else "o-", color=colour, ms=4, label=curve.label)
        if len(curve.fitted):
            axes.plot(curve.x, curve.fitted, "-", color=colour, lw=1.2)
    axes.set_xscale("log")
    axes.set_yscale(panel.scale)
    axes.set_title(panel.title, fontsize=11, loc="left", fontweight="bold")
    axes.set_xlabel(panel.across)
    axes.set_ylabel(panel.up)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
