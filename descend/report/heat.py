"""A matrix as a picture: each cell shaded by its value, blue above zero, orange below. Also images as inline PNG."""

from __future__ import annotations

import base64
import io
import json
from html import escape
from typing import Any

import numpy as np
from PIL import Image

HOVER = 20_000  # cells of a matrix whose values are written into the page for the mouse
PRINT = 400  # cells up to which the values are printed in them
ABOVE, BELOW = (43, 108, 216), (214, 104, 32)


def heat(
    values: Any,
    rows: list[str] | None = None,
    columns: list[str] | None = None,
    labels: tuple[str, str] = ("", ""),
    shades: Any = None,
) -> str:
    """The matrix with row and column names; `shades` (0..1) replaces the values as darkness."""
    v = np.asarray(values, dtype=float)
    if v.ndim != 2 or not v.size:
        raise ValueError(f"a heat map needs a matrix, not shape {v.shape}")
    top = np.nanmax(np.abs(v)) or 1.0
    shade = np.nan_to_num(np.asarray(v / top if shades is None else shades, dtype=float))
    n, m = v.shape
    for names, size, what in ((rows, n, "rows"), (columns, m, "columns")):
        if names is not None and len(names) != size:
            raise ValueError(f"{len(names)} names for {size} {what}")
    cell = max(6.0, min(34.0, 640 / max(n, m)))
    left = 26.0 + 6.4 * max((len(str(r)) for r in rows or []), default=0)
    name_width = 6.4 * max((len(str(c)) for c in columns or []), default=0)
    slanted = name_width > cell - 2
    head = 26.0 + (0.75 * name_width if slanted else 8.0 if columns else 0.0)
    width = left + m * cell + 12 + (0.75 * name_width if slanted else 0.0)
    width = max(width, left + 6.4 * len(axes(labels)))  # a matrix of two classes is narrower than its labels
    height = head + n * cell + 4
    parts = [
        f'<image href="{png(tint(shade))}" x="{left}" y="{head:.1f}" width="{m * cell:.1f}" height="{n * cell:.1f}"'
        ' preserveAspectRatio="none"/>',
        f'<rect class="frame" x="{left}" y="{head:.1f}" width="{m * cell:.1f}" height="{n * cell:.1f}"/>',
        *names_of(rows, columns, cell, (left, head), slanted),
        f'<text class="name" x="{left}" y="13">{escape(axes(labels))}</text>',
    ]
    if v.size <= PRINT:
        parts += [printed(v, shade, cell, left, head)]
    hover = ""
    if v.size <= HOVER:
        data = {
            "cell": cell,
            "left": left,
            "head": head,
            "rows": [str(r) for r in rows] if rows else None,
            "columns": [str(c) for c in columns] if columns else None,
            "values": [[float(f"{x:.3g}") if np.isfinite(x) else None for x in row] for row in v],
        }
        hover = f' data-cells="{escape(json.dumps(data, separators=(",", ":")))}"'
    shown = f"max-width:{max(width, 220):.0f}px"
    return f'<svg class="heat" style="{shown}" viewBox="0 0 {width:.0f} {height:.0f}"{hover}>{"".join(parts)}</svg>'


def axes(labels: tuple[str, str]) -> str:
    """("true", "predicted") -> "true ↓  predicted →" """
    return "  ".join(f"{name} {arrow}" for name, arrow in zip(labels, "↓→", strict=True) if name)


def names_of(
    rows: list[str] | None, columns: list[str] | None, cell: float, corner: tuple[float, float], slanted: bool
) -> list[str]:
    left, head = corner
    every = max(1, round(11 / cell))  # names that would overlap are left out
    parts = []
    for i, name in list(enumerate(rows or []))[::every]:
        y = head + (i + 0.5) * cell
        parts.append(f'<text x="{left - 6}" y="{y:.1f}" dy=".32em" text-anchor="end">{escape(str(name))}</text>')
    for j, name in list(enumerate(columns or []))[::every]:
        x, y = left + (j + 0.5) * cell, head - 6
        turn = f' transform="rotate(-48 {x:.1f} {y:.1f})"' if slanted else ' text-anchor="middle"'
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{turn}>{escape(str(name))}</text>')
    return parts


def printed(v: np.ndarray, shade: np.ndarray, cell: float, left: float, head: float) -> str:
    """The values in their cells, where they fit."""
    whole = bool(np.all(v == np.round(v)))
    texts = [[f"{x:.0f}" if whole else f"{x:.2f}".replace("0.", ".") for x in row] for row in v]
    if max(len(t) for row in texts for t in row) * 6.4 > cell:
        return ""
    parts = []
    for i, j in np.ndindex(*v.shape):
        if v[i, j]:
            tone = "on" if abs(shade[i, j]) > 0.55 else "in"
            x, y = left + (j + 0.5) * cell, head + (i + 0.5) * cell
            parts.append(f'<text class="{tone}" x="{x:.1f}" y="{y:.1f}" dy=".32em">{texts[i][j]}</text>')
    return "".join(parts)


def tint(shade: np.ndarray) -> np.ndarray:
    """Darkness -1..1 as a colour of that opacity, so that it stands on light and on dark pages."""
    colour = np.where(shade[..., None] >= 0, ABOVE, BELOW)
    return np.concatenate([colour, np.abs(shade[..., None]).clip(0, 1) * 255], -1).round().astype(np.uint8)


def png(pixels: np.ndarray) -> str:
    """Pixels (h, w), (h, w, 3) or (h, w, 4) of 0..255 as a data URL."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
