"""The panels that a lab's figure is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#2b6cd8", "#d66820", "#2a9d5c", "#9b51c4", "#c23b4e", "#7a7a7a")


def make_panels(n: int) -> tuple[Figure, list[Axes]]:
    """A figure with n panels beside each other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1 + 4 * n, 3.9), layout="constrained")
    return figure, list(figure.subplots(1, n, squeeze=False)[0])


def finish(axes: Axes, title: str, x: str, legend: bool = True) -> None:
    """Title, name of the x axis, grid, and a legend where there is something to name."""
    axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
    axes.set_xlabel(x)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if legend and axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8)
