"""A chart whose axis across is chosen: by orders of magnitude, or named places."""

from __future__ import annotations

import json
from html import escape

from descend.report.svg import Axis, Series, draw, grid, limits, marked, watched

Mark = tuple[float, float, str]


def decades(
    series: list[Series],
    size: tuple[int, int] = (980, 320),
    labels: tuple[str, str] = ("", ""),
    log: bool = True,
    places: list[str] | None = None,
    marks: list[Mark] | None = None,
) -> str:
    """Lines and points over an axis by orders of magnitude (`log`), an even one, or the named places 0, 1, 2, …"""
    points = [p for s in series for p in s.finite()]
    if not points:
        return '<p class="empty">nothing was measured</p>'
    width, height = size
    xs, ys = [x for x, _ in points], [y for _, y in points]
    if places is not None:
        across = Axis(-0.5, len(places) - 0.5, 52, width - 14)
    elif log:
        across = Axis(min(xs) / 1.1, max(xs) * 1.1, 52, width - 14, log=True)
    else:
        across = Axis(*limits(xs), 52, width - 14)
    up = Axis(*limits(ys), height - 34, 12)
    rows, columns = max(3, min(8, height // 45)), max(3, width // 110)
    parts = [grid(across, up, columns, rows) if places is None else named_grid(across, up, rows, places)]
    parts.append(f'<text class="name" x="{width - 14}" y="{height - 4}" text-anchor="end">{escape(labels[0])}</text>')
    parts.append(f'<text class="name" x="58" y="22">{escape(labels[1])}</text>' if labels[1] else "")
    parts += [draw(s, across, up) for s in series]
    parts += [marked(mark, across, up, width) for mark in marks or []]
    hover = [watched(s, across, up) for s in series if s.form != "faint"]
    data = escape(json.dumps(hover, separators=(",", ":")))
    svg = f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" data-hover="{data}">{"".join(parts)}</svg>'
    return f'<div class="big">{svg}</div>' if width > 600 else svg


def named_grid(across: Axis, up: Axis, rows: int, places: list[str]) -> str:
    """Horizontal lines with their values, the axis, and a name at each place."""
    parts = [f'<line class="axis" x1="{across.start}" x2="{across.end}" y1="{up.start}" y2="{up.start}"/>']
    for value, text in up.ticks(rows):
        y = f"{up.at(value):.1f}"
        parts.append(f'<line class="grid" x1="{across.start}" x2="{across.end}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{across.start - 8}" y="{y}" dy=".32em" text-anchor="end">{text}</text>')
    for i, name in enumerate(places):
        x = f"{across.at(float(i)):.1f}"
        parts.append(f'<text x="{x}" y="{up.start + 17}" text-anchor="middle">{escape(name)}</text>')
    return "".join(parts)
