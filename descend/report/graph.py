"""A graph in the plane: edges as lines, nodes as dots in the colours of their classes; the mouse names a node."""

from __future__ import annotations

from typing import Any

import numpy as np

from descend.web.axes import Axis
from descend.web.markup import Html, html, join
from descend.web.palette import PALETTE
from descend.web.parts import make_legend

Size = tuple[int, int]
WHOLE, TILE, AIR = (1000, 620), (230, 170), 14
SHADES = 6  # of edges with weights
LARGE, SMALL = 7.0, 3.4  # radius of a dot: of few nodes, of many
TILE_DOT = 6.0
NAMED = 40  # nodes at most whose names are written
TITLED = 60  # pixels at both sides for the names


def draw_graph(content: dict[str, Any]) -> Html:
    """{"at": [[x, y], ..], "edges": [[i, j], ..], "classes": numbers, "labels": names}, and where they are there
    "names": of the nodes, "said": a text for the mouse, "rings": "wrong", "given" or "" for each node, "weights": 0..1
    of the edges, "extra": edges that are drawn in colour."""
    at = np.asarray(content["at"], dtype=float).reshape(-1, 2)
    classes, labels = [int(k) for k in content["classes"]], [str(name) for name in content["labels"]]
    if len(classes) != len(at) or not len(at):
        raise ValueError(f"{len(at)} places for {len(classes)} nodes")
    radius = LARGE if len(at) <= NAMED else max(SMALL, LARGE - len(at) / 90)
    svg = frame_graph(content, place_dots(at, WHOLE, TITLED if len(at) <= NAMED else AIR), classes, radius, WHOLE)
    used = sorted(set(classes))
    legend = make_legend((labels[k], k % PALETTE) for k in used) if 1 < len(used) <= PALETTE else None
    return html('{}<div class="big">{}</div>', legend, svg)


def draw_graphs(content: dict[str, Any]) -> Html:
    """{"graphs": [{"at", "edges", "classes"}, ..], "captions": texts}: small graphs side by side."""
    tiles = []
    for graph, caption in zip(content["graphs"], content["captions"], strict=True):
        at = np.asarray(graph["at"], dtype=float).reshape(-1, 2)
        svg = frame_graph(graph, place_dots(at, TILE, AIR), [int(k) for k in graph["classes"]], TILE_DOT, TILE)
        tiles.append(html("<figure>{}<figcaption>{}</figcaption></figure>", svg, str(caption)))
    return html('<div class="images" style="--side: {}px">{}</div>', TILE[0], tiles)


def frame_graph(
    content: dict[str, Any], placed: list[tuple[float, float]], classes: list[int], radius: float, size: Size
) -> Html:
    """Edges, dots and names."""
    weights = content.get("weights") or [0.4] * len(content["edges"])
    lines = draw_edges(placed, content["edges"], weights, "links")
    extra = draw_edges(placed, content.get("extra", []), [1.0] * len(content.get("extra", [])), "links new")
    dots = draw_dots(placed, classes, content, radius)
    names = write_names(placed, [str(name) for name in content.get("names", [])], radius, size[0])
    frame = '<svg class="chart" viewBox="0 0 {} {}" role="img">{}{}{}{}</svg>'
    return html(frame, *size, lines, extra, dots, names)


def place_dots(at: np.ndarray, size: Size, air: int) -> list[tuple[float, float]]:
    """Pixels, the picture filled."""
    lo, hi = at.min(axis=0), at.max(axis=0)
    lo, hi = np.where(hi > lo, lo, lo - 1), np.where(hi > lo, hi, hi + 1)
    across, up = Axis(lo[0], hi[0], air, size[0] - air), Axis(lo[1], hi[1], size[1] - AIR, AIR)
    return [(across.at(float(x)), up.at(float(y))) for x, y in at]


def draw_edges(placed: list[tuple[float, float]], edges: Any, weights: Any, style: str) -> Html:
    """Lines, darker with their weight; those of about one weight are one path."""
    shades: dict[int, list[str]] = {}
    for (i, j), weight in zip(edges, weights, strict=True):
        (x0, y0), (x1, y1) = placed[int(i)], placed[int(j)]
        shade = round(max(0.0, min(1.0, float(weight))) * (SHADES - 1))
        shades.setdefault(shade, []).append(f"M{x0:.1f},{y0:.1f}L{x1:.1f},{y1:.1f}")
    paths = [
        html('<path d="{}" opacity="{:.2f}"/>', "".join(shades[k]), 0.12 + 0.88 * k / (SHADES - 1))
        for k in sorted(shades)
    ]
    return html('<g class="{}">{}</g>', style, join(paths))


def draw_dots(placed: list[tuple[float, float]], classes: list[int], content: dict[str, Any], radius: float) -> Html:
    """Nodes with what the mouse shows."""
    rings = content.get("rings") or [""] * len(placed)
    said = content.get("said") or content.get("names") or [""] * len(placed)
    dot = '<g class="c{}"><circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"><title>{}</title></circle></g>'
    dots = [
        html(dot, k % PALETTE, ring, x, y, radius, text)
        for (x, y), k, ring, text in zip(placed, classes, rings, said, strict=True)
    ]
    return html('<g class="nodes">{}</g>', join(dots))


def write_names(placed: list[tuple[float, float]], names: list[str], radius: float, width: int) -> Html | None:
    """Beside the dots, where there are few."""
    if not names or len(names) > NAMED:
        return None
    side = lambda x: ("end", -radius - 3) if x > width - 90 else ("start", radius + 3)
    return join(
        html('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>', x + side(x)[1], y + 3.5, side(x)[0], name)
        for (x, y), name in zip(placed, names, strict=True)
    )
