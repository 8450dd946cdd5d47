"""What a family deserves to be looked at: samples, confusion, points, curves, images, masks, heat maps, tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from descend.report.attention import draw_heads, shade_tokens
from descend.report.calibration import draw_reliability
from descend.report.field import draw_plane
from descend.report.film import draw_film
from descend.report.graph import draw_graph, draw_graphs
from descend.report.overlay import draw_masks
from descend.report.plane import draw_fit, draw_regions
from descend.report.words import draw_words
from descend.web.chart import Series, draw_chart, name_series
from descend.web.heatmap import Names, draw_heatmap
from descend.web.markup import Html, html, join
from descend.web.palette import PALETTE
from descend.web.parts import make_card, make_images, make_note, make_table, make_warning
from descend.web.pixels import encode_image

if TYPE_CHECKING:
    from descend.contracts import Exhibit

DOTS = 2000  # points of a cloud that are drawn
ROW, GAP = 976, 12  # pixels of a card, and between two images
HALF = ("confusion", "points", "heatmap", "table", "regions", "plane", "against", "reliability")  # two in a row


def make_section(exhibit: Exhibit) -> Html:
    """An exhibit with its title and note. What cannot be drawn says so: the report of a long run must not fail."""
    draw = KINDS.get(exhibit.kind)
    try:
        if draw is None:
            raise ValueError(f"kind {exhibit.kind!r} is unknown; the kinds are {', '.join(KINDS)}")
        body = draw(exhibit.content)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        body = make_warning(f"This exhibit could not be drawn ({type(error).__name__}: {error}).")
    style = "half" if exhibit.kind in HALF else "whole"
    return make_card(exhibit.title, body, note=exhibit.note, style=style)


def print_text(content: Any) -> Html:
    """A string, {"prompt", "text"}, or a list of them."""
    if isinstance(content, list | tuple):
        return join(print_text(item) for item in content)
    if isinstance(content, dict):
        return html('<pre><b class="prompt">{}</b>{}</pre>', str(content["prompt"]), str(content["text"]))
    return html("<pre>{}</pre>", str(content))


def draw_confusion(content: dict[str, Any]) -> Html:
    """{"labels", "counts"}: rows are the truth, columns the answer; shaded by the share of the row. "columns" are the
    names of the answers, where they are other ones."""
    counts = np.asarray(content["counts"])
    labels = [str(name) for name in content["labels"]]
    columns = [str(name) for name in content.get("columns", labels)]
    if counts.shape != (len(labels), len(labels)):
        raise ValueError(f"{len(labels)} labels for counts of shape {counts.shape}")
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    right, total = int(np.trace(counts)), int(counts.sum())
    said = make_note(f"{right:,} of {total:,} correct ({right / max(total, 1):.2%})")
    return join([said, draw_heatmap(counts, Names(labels, columns, "true", "predicted"), share)])


def draw_points(content: dict[str, Any]) -> Html:
    """Named clouds of points {"real": [[x, y], ..], "generated": ..}."""
    series = []
    for i, (name, cloud) in enumerate(content.items()):
        xy = np.asarray(cloud, dtype=float)
        if xy.ndim != 2 or xy.shape[1] != 2:
            raise ValueError(f"{name}: points are pairs [x, y], not shape {xy.shape}")
        xy = xy[:: max(1, -(-len(xy) // DOTS))]
        series.append(Series(name, xy[:, 0].tolist(), xy[:, 1].tolist(), "dots", i % PALETTE))
    drawn = draw_chart(series, (560, 520), ("", ""), scale="equal")
    return html('{}<div class="square">{}</div>', name_series(series), drawn)


def draw_curve(content: dict[str, Any]) -> Html:
    """{"x", "y", "x_label", "y_label", "scale"}; y is one list of values, or several by name."""
    lines = content["y"] if isinstance(content["y"], dict) else {str(content.get("y_label", "y")): content["y"]}
    x = [float(v) for v in content["x"]]
    series = [
        Series(str(name), x, [float(v) for v in y], "line", i % PALETTE) for i, (name, y) in enumerate(lines.items())
    ]
    named = (str(content.get("x_label", "x")), str(content.get("y_label", "")))
    legend = name_series(series) if len(series) > 1 else None
    return html("{}{}", legend, draw_chart(series, (1000, 300), named, scale=str(content.get("scale", "auto"))))


def draw_images(content: dict[str, Any]) -> Html:
    """{"images": (n, h, w) or (n, h, w, 3) of 0..1, "captions": [...]}: a grid; "side": how wide an image is shown."""
    pixels = np.asarray(content["images"], dtype=float)
    if pixels.ndim not in (3, 4) or (pixels.ndim == 4 and pixels.shape[-1] != 3):
        raise ValueError(f"images have shape (n, h, w) or (n, h, w, 3), not {pixels.shape}")
    captions = content.get("captions") or [""] * len(pixels)
    if len(captions) != len(pixels):
        raise ValueError(f"{len(captions)} captions for {len(pixels)} images")
    side = int(content.get("side", image_side(pixels.shape[2])))
    return make_images([encode_image(image) for image in pixels], captions, side)


def image_side(width: int) -> int:
    """How wide an image of this many pixels is shown."""
    return max(64, min(220, 4 * width))


def draw_sheet(content: dict[str, Any]) -> Html:
    """{"rows": (r, k, h, w) or (r, k, h, w, 3) of 0..1, "captions": [...]}: a contact sheet, one row a caption."""
    pixels = np.asarray(content["rows"], dtype=float)
    if pixels.ndim not in (4, 5) or (pixels.ndim == 5 and pixels.shape[-1] != 3):
        raise ValueError(f"rows have shape (r, k, h, w) or (r, k, h, w, 3), not {pixels.shape}")
    side = min(image_side(pixels.shape[3]), (ROW + GAP) // pixels.shape[1] - GAP)  # a row stays one row
    parts = zip(pixels, content["captions"], strict=True)
    return join(
        [make_note(str(name)), make_images([encode_image(image) for image in row], [""] * len(row), side)]
        for row, name in parts
    )


def draw_matrix(content: dict[str, Any]) -> Html:
    """{"values": matrix, "rows": names, "columns": names, "row_label", "column_label"}; "texts": what is printed in the
    cells instead of the values."""
    labels = str(content.get("row_label", "")), str(content.get("column_label", ""))
    names = Names(content.get("rows"), content.get("columns"), *labels)
    return draw_heatmap(content["values"], names, texts=content.get("texts"))


def explain_absence(content: str) -> Html:
    """Why an exhibit could not be made."""
    return make_warning(f"Not shown: {content}")


def draw_table(content: dict[str, Any]) -> Html:
    """{"columns": names, "rows": [[...], ...]}"""
    return make_table(content["columns"], content["rows"])


KINDS: dict[str, Callable[[Any], Html]] = {
    "text": print_text,
    "confusion": draw_confusion,
    "points": draw_points,
    "curve": draw_curve,
    "images": draw_images,
    "sheet": draw_sheet,
    "film": draw_film,
    "heatmap": draw_matrix,
    "table": draw_table,
    "regions": draw_regions,
    "plane": draw_plane,
    "against": draw_fit,
    "reliability": draw_reliability,
    "words": draw_words,
    "graph": draw_graph,
    "graphs": draw_graphs,
    "masks": draw_masks,
    "heads": draw_heads,
    "tokens": shade_tokens,
    "missing": explain_absence,
}
