"""A map of words: each at its place in the plane, the first ones named; a name that would cover another is left out."""

from __future__ import annotations

from typing import Any

from descend.web.axes import fit_axes
from descend.web.markup import Html, html

SIZE = (1000, 620)
LETTER, LINE = 6.2, 12.0  # pixels of a letter, and of a line of text


def draw_words(content: dict[str, Any]) -> Html:
    """{"words": names, "at": [[x, y], ..]}: earlier words are named first; the mouse names the others."""
    names, at = [str(name) for name in content["words"]], [(float(x), float(y)) for x, y in content["at"]]
    if len(names) != len(at) or not names:
        raise ValueError(f"{len(names)} words at {len(at)} places")
    across, up = fit_axes(at, SIZE, "even")
    placed = [(across.at(x), up.at(y)) for x, y in at]
    dots = [
        html('<circle cx="{:.1f}" cy="{:.1f}" r="2.2"><title>{}</title></circle>', x, y, name)
        for name, (x, y) in zip(names, placed, strict=True)
    ]
    said = [
        html('<text x="{:.1f}" y="{:.1f}">{}</text>', x + 4, y - 3, name)
        for name, (x, y), seen in zip(names, placed, find_room(names, placed), strict=True)
        if seen
    ]
    svg = '<svg class="chart" viewBox="0 0 {} {}" role="img"><g class="dots c0">{}</g>{}</svg>'
    return html('<div class="big">{}</div>', html(svg, *SIZE, dots, said))


def find_room(names: list[str], placed: list[tuple[float, float]]) -> list[bool]:
    """Which names have room beside those before them."""
    taken: list[tuple[float, float, float]] = []
    free = []
    for name, (x, y) in zip(names, placed, strict=True):
        end = x + 4 + LETTER * len(name)
        free.append(all(end < left or x > right or abs(y - line) > LINE for left, right, line in taken))
        if free[-1]:
            taken.append((x, end, y))
    return free
