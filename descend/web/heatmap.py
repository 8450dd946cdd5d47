"""A matrix as an image: each cell shaded by its value, blue above zero, orange below."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from descend.web.markup import Html, html
from descend.web.pixels import encode_png, tint

HOVER = 20_000  # cells of a matrix whose values are written into the page for the mouse
PRINT = 400  # cells up to which the values are printed in them
LETTER = 6.4  # pixels


@dataclass(frozen=True)
class Names:
    """What rows and columns are called, one by one and as a whole."""

    rows: list[str] | None = None
    columns: list[str] | None = None
    row_label: str = ""
    column_label: str = ""

    def axes(self) -> str:
        """("true", "predicted") -> "true ↓  predicted →" """
        both = zip((self.row_label, self.column_label), "↓→", strict=True)
        return "  ".join(f"{name} {arrow}" for name, arrow in both if name)


@dataclass(frozen=True)
class Cells:
    """Where the cells stand."""

    side: float
    left: float
    top: float
    slanted: bool

    def middle(self, i: int, j: int) -> tuple[float, float]:
        return self.left + (j + 0.5) * self.side, self.top + (i + 0.5) * self.side


def draw_heatmap(values: Any, names: Names | None = None, shades: Any = None, texts: Any = None) -> Html:
    """The matrix with its names; `shades` (0..1) replaces the values as darkness, `texts` what is printed in cells."""
    v, names = np.asarray(values, dtype=float), names or Names()
    if v.ndim != 2 or not v.size:
        raise ValueError(f"a heat map needs a matrix, not shape {v.shape}")
    shade = np.nan_to_num(np.asarray(v / (np.nanmax(np.abs(v)) or 1.0) if shades is None else shades, dtype=float))
    n, m = v.shape
    for given, size, what in ((names.rows, n, "rows"), (names.columns, m, "columns")):
        if given is not None and len(given) != size:
            raise ValueError(f"{len(given)} names for {size} {what}")
    side = max(6.0, min(34.0, 640 / max(n, m)))
    left = 26.0 + LETTER * max((len(str(r)) for r in names.rows or []), default=0)
    longest = LETTER * max((len(str(c)) for c in names.columns or []), default=0)
    slanted = longest > side - 2
    top = 26.0 + (0.75 * longest if slanted else 8.0 if names.columns else 0.0)
    cells = Cells(side, left, top, slanted)
    width = left + m * side + 12 + (0.75 * longest if slanted else 0.0)
    width = max(width, left + LETTER * len(names.axes()))  # a matrix of two classes is narrower than its labels
    box = html('x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"', left, top, m * side, n * side)
    parts = [
        html('<image href="{}" {} preserveAspectRatio="none"/>', encode_png(tint(shade)), box),
        html('<rect class="frame" {}/>', box),
        *draw_names(names, cells),
        html('<text class="name" x="{:.1f}" y="13">{}</text>', left, names.axes()),
        *print_texts(format_values(v, cells) if texts is None else texts, shade, cells),
    ]
    frame = '<svg class="heat" style="max-width:{:.0f}px" viewBox="0 0 {:.0f} {:.0f}" role="img"{}>{}</svg>'
    height = top + n * side + 4
    return html(frame, max(width, 220), width, height, hover_data(v, names, cells), parts)


def hover_data(v: np.ndarray, names: Names, cells: Cells) -> Html:
    """The values for the mouse, where they are not too many."""
    if v.size > HOVER:
        return Html()
    data = {
        "cell": cells.side,
        "left": cells.left,
        "head": cells.top,
        "rows": [str(r) for r in names.rows] if names.rows else None,
        "columns": [str(c) for c in names.columns] if names.columns else None,
        "values": [[float(f"{x:.3g}") if np.isfinite(x) else None for x in row] for row in v],
    }
    return html(' data-cells="{}"', json.dumps(data, separators=(",", ":")))


def draw_names(names: Names, cells: Cells) -> list[Html]:
    """Row and column names; those that would overlap are left out."""
    every = max(1, round(11 / cells.side))
    parts = []
    for i, name in list(enumerate(names.rows or []))[::every]:
        at = cells.left - 6, cells.middle(i, 0)[1], str(name)
        parts.append(html('<text x="{:.1f}" y="{:.1f}" dy=".32em" text-anchor="end">{}</text>', *at))
    for j, name in list(enumerate(names.columns or []))[::every]:
        x, y = cells.middle(0, j)[0], cells.top - 6
        turned = html(' transform="rotate(-48 {:.1f} {:.1f})"', x, y)
        side = turned if cells.slanted else Html(' text-anchor="middle"')
        parts.append(html('<text x="{:.1f}" y="{:.1f}"{}>{}</text>', x, y, side, str(name)))
    return parts


def format_values(v: np.ndarray, cells: Cells) -> list[list[str]]:
    """The values as they are printed in their cells, where they fit; a 0 is left out."""
    if v.size > PRINT:
        return []
    whole = bool(np.all(v == np.round(v)))
    texts = [[f"{x:.0f}" if whole else f"{x:.2f}".replace("0.", ".") for x in row] for row in v]
    if max(len(t) for row in texts for t in row) * LETTER > cells.side:
        return []
    return [[text if x else "" for x, text in zip(row, line, strict=True)] for row, line in zip(v, texts, strict=True)]


def print_texts(texts: list[list[str]], shade: np.ndarray, cells: Cells) -> list[Html]:
    """A text in the middle of each cell, light on a dark one."""
    parts = []
    for i, row in enumerate(texts):
        for j, text in enumerate(row):
            if text:
                tone = "on" if abs(shade[i, j]) > 0.55 else "in"
                x, y = cells.middle(i, j)
                parts.append(html('<text class="{}" x="{:.1f}" y="{:.1f}" dy=".32em">{}</text>', tone, x, y, text))
    return parts
