"""A map of words: each at its place in the plane, the first ones named; a name that would cover another is left out."""

from __future__ import annotations

from html import escape
from typing import Any

from descend.report.svg import axes

SIZE = (1000, 620)
LETTER, LINE = 6.2, 12.0  # pixels of a letter, and of a line of text


def words(content: dict[str, Any]) -> str:
    """{"words": names, "at": [[x, y], ..]}: earlier words are named first; the mouse names the others."""
    names, at = [str(name) for name in content["words"]], [(float(x), float(y)) for x, y in content["at"]]
    if len(names) != len(at) or not names:
        raise ValueError(f"{len(names)} words at {len(at)} places")
    across, up = axes(at, SIZE, "even")
    placed = [(across.at(x), up.at(y)) for x, y in at]
    free = unhidden(names, placed)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2"><title>{escape(name)}</title></circle>'
        for name, (x, y) in zip(names, placed, strict=True)
    )
    said = "".join(
        f'<text x="{x + 4:.1f}" y="{y - 3:.1f}">{escape(name)}</text>'
        for name, (x, y), seen in zip(names, placed, free, strict=True)
        if seen
    )
    width, height = SIZE
    svg = f'<svg class="chart" viewBox="0 0 {width} {height}" role="img"><g class="dots c0">{dots}</g>{said}</svg>'
    return f'<div class="big">{svg}</div>'


def unhidden(names: list[str], placed: list[tuple[float, float]]) -> list[bool]:
    """Which names have room beside those before them."""
    taken: list[tuple[float, float, float]] = []
    free = []
    for name, (x, y) in zip(names, placed, strict=True):
        end = x + 4 + LETTER * len(name)
        free.append(all(end < left or x > right or abs(y - line) > LINE for left, right, line in taken))
        if free[-1]:
            taken.append((x, end, y))
    return free
