"""The picture of a run's loss around its weights: contours on a plane, and lines."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from descend.web.markup import Html, html
from descend.web.page import make_page
from descend.web.parts import make_card, make_header, make_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVELS = 16


@dataclass(frozen=True)
class Landscape:
    """Losses around a checkpoint: on a plane (rows b, columns a), and along a line from another checkpoint to it."""

    run: str
    checkpoint: str
    start: str
    """The checkpoint where the line begins; empty: there is no line."""
    examples: int
    seed: int
    loss: float
    steps: list[float]
    plane: list[list[float]]
    way: list[float]
    line: list[float]

    def facts(self) -> dict[str, Any]:
        """What the picture says in numbers."""
        cells = [value for row in self.plane for value in row]
        found = {
            "loss at the checkpoint": self.loss,
            "lowest loss on the plane": min(cells),
            "highest loss on the plane": max(cells),
            "mean rise over the plane": sum(cells) / len(cells) - self.loss,
        }
        if self.start:
            hump = max(self.line) - max(self.line[self.way.index(0.0)], self.line[self.way.index(1.0)])
            found[f"loss at {self.start}"] = self.line[self.way.index(0.0)]
            found["barrier between them"] = max(hump, 0.0)
        return found


def draw_landscape(found: Landscape) -> Figure:
    """Contours of the plane, its two axes as curves, and the line."""
    import numpy as np
    from matplotlib.figure import Figure

    panels = 3 if found.start else 2
    figure = Figure(figsize=(1 + 4.2 * panels, 4.2), layout="constrained")
    plane, axis, *rest = figure.subplots(1, panels)
    values, middle = np.array(found.plane), len(found.steps) // 2
    finite = np.where(np.isfinite(values), values, np.nanmax(values[np.isfinite(values)]))
    shift = finite.min() - 1e-12
    levels = np.unique(shift + np.geomspace(1e-3 * (np.ptp(finite) or 1.0), np.ptp(finite) or 1.0, LEVELS))
    drawn = plane.contourf(found.steps, found.steps, finite, levels=[shift, *levels], cmap="viridis", extend="both")
    plane.contour(found.steps, found.steps, finite, levels=levels, colors="white", linewidths=0.4)
    plane.plot(0, 0, "o", color="white", ms=5, mec="black")
    figure.colorbar(drawn, ax=plane, shrink=0.8)
    finish(plane, "loss on a plane", "first direction")
    plane.set_ylabel("second direction")
    for name, row in (("first direction", values[middle]), ("second direction", values[:, middle])):
        axis.plot(found.steps, row, lw=1.6, label=name)
    axis.plot(0, found.loss, "o", color="black", ms=4)
    axis.legend(frameon=False, fontsize=8)
    finish(axis, "loss along each direction", "filter lengths")
    for line in rest:
        line.plot(found.way, found.line, lw=1.6)
        ends = [found.line[found.way.index(end)] for end in (0.0, 1.0)]
        line.plot([0, 1], ends, "o", color="black", ms=4)
        finish(line, "loss between two checkpoints", f"0: {found.start}, 1: {found.checkpoint}")
    return figure


def finish(axes: Any, title: str, x: str) -> None:
    axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
    axes.set_xlabel(x)
    axes.spines[["top", "right"]].set_visible(False)


def make_landscape_page(found: Landscape) -> Html:
    """A page that needs no other file."""
    file = io.StringIO()
    draw_landscape(found).savefig(file, format="svg", metadata={"Date": None})
    drawing = file.getvalue()
    about = (
        f"The loss on {found.examples} validation examples around {found.checkpoint}. The directions are random (seed"
        f" {found.seed}), and as long as the model's own weights filter by filter: 1 is a step as long as they are."
    )
    return make_page(
        f"{found.run}: loss landscape",
        make_header(f"{found.run}: loss landscape", about),
        html('<section class="card paper">{}</section>', Html(drawing[drawing.index("<svg") :])),
        make_card("In numbers", make_table(["", ""], list(found.facts().items()))),
    )
