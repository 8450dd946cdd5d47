"""What a family deserves to be looked at: samples, confusion, points, curves, images, masks, heat maps, tables."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from descend.report.attention import heads, tokens
from descend.report.heat import heat, png
from descend.report.overlay import masks
from descend.report.plane import against, regions
from descend.report.svg import Series, chart
from descend.report.words import words

if TYPE_CHECKING:
    from descend.engine.protocol import Exhibit

DOTS = 2000  # points of a cloud that are drawn


def section(exhibit: Exhibit) -> str:
    """An exhibit with its title and note. What cannot be drawn says so: the report of a long run must not fail."""
    draw = KINDS.get(exhibit.kind)
    try:
        if draw is None:
            raise ValueError(f"kind {exhibit.kind!r} is unknown; the kinds are {', '.join(KINDS)}")
        body = draw(exhibit.content)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        said = f"{type(error).__name__}: {error}"
        body = f'<p class="warning">This exhibit could not be drawn ({escape(said)}).</p>'
    note = f'<p class="note">{escape(exhibit.note)}</p>' if exhibit.note else ""
    width = "half" if exhibit.kind in ("confusion", "points", "heatmap", "table", "regions", "against") else "whole"
    return f'<section class="card {width}"><h2>{escape(exhibit.title)}</h2>{note}{body}</section>'


def text(content: Any) -> str:
    """A string, {"prompt", "text"}, or a list of them."""
    if isinstance(content, list | tuple):
        return "".join(text(item) for item in content)
    if isinstance(content, dict):
        return f'<pre><b class="prompt">{escape(str(content["prompt"]))}</b>{escape(str(content["text"]))}</pre>'
    return f"<pre>{escape(str(content))}</pre>"


def confusion(content: dict[str, Any]) -> str:
    """{"labels", "counts"}: rows are the truth, columns the answer; shaded by the share of the row."""
    counts = np.asarray(content["counts"])
    labels = [str(name) for name in content["labels"]]
    if counts.shape != (len(labels), len(labels)):
        raise ValueError(f"{len(labels)} labels for counts of shape {counts.shape}")
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    right, total = int(np.trace(counts)), int(counts.sum())
    said = f'<p class="note">{right:,} of {total:,} right ({right / max(total, 1):.2%})</p>'
    return said + heat(counts, labels, labels, ("true", "predicted"), share)


def points(content: dict[str, Any]) -> str:
    """Named clouds of points {"real": [[x, y], ..], "generated": ..}."""
    series = []
    for i, (name, cloud) in enumerate(content.items()):
        xy = np.asarray(cloud, dtype=float)
        if xy.ndim != 2 or xy.shape[1] != 2:
            raise ValueError(f"{name}: points are pairs [x, y], not shape {xy.shape}")
        xy = xy[:: max(1, -(-len(xy) // DOTS))]
        series.append(Series(name, xy[:, 0].tolist(), xy[:, 1].tolist(), "dots", i % 6))
    return legend(series) + f'<div class="square">{chart(series, (560, 520), ("", ""), scale="equal")}</div>'


def curve(content: dict[str, Any]) -> str:
    """{"x", "y", "x_label", "y_label"}; y is one list of values, or several by name."""
    lines = content["y"] if isinstance(content["y"], dict) else {str(content.get("y_label", "y")): content["y"]}
    x = [float(v) for v in content["x"]]
    series = [Series(str(name), x, [float(v) for v in y], "line", i % 6) for i, (name, y) in enumerate(lines.items())]
    named = (str(content.get("x_label", "x")), str(content.get("y_label", "")))
    return (legend(series) if len(series) > 1 else "") + chart(series, (1000, 300), named, scale="auto")


def images(content: dict[str, Any]) -> str:
    """{"images": (n, h, w) or (n, h, w, 3) of 0..1, "captions": [...]}: a grid."""
    pixels = np.asarray(content["images"], dtype=float)
    if pixels.ndim not in (3, 4) or (pixels.ndim == 4 and pixels.shape[-1] != 3):
        raise ValueError(f"images have shape (n, h, w) or (n, h, w, 3), not {pixels.shape}")
    captions = content.get("captions") or [""] * len(pixels)
    if len(captions) != len(pixels):
        raise ValueError(f"{len(captions)} captions for {len(pixels)} images")
    side = max(64, min(220, 4 * pixels.shape[2]))
    whole = (np.nan_to_num(pixels).clip(0, 1) * 255).round().astype(np.uint8)
    cells = [
        f'<figure><img src="{png(image)}" alt=""><figcaption>{escape(str(caption))}</figcaption></figure>'
        for image, caption in zip(whole, captions, strict=True)
    ]
    return f'<div class="images" style="--side:{side}px">{"".join(cells)}</div>'


def sheet(content: dict[str, Any]) -> str:
    """{"rows": (r, k, h, w) or (r, k, h, w, 3) of 0..1, "captions": [...]}: a contact sheet, one row a caption."""
    pixels = np.asarray(content["rows"], dtype=float)
    if pixels.ndim not in (4, 5) or (pixels.ndim == 5 and pixels.shape[-1] != 3):
        raise ValueError(f"rows have shape (r, k, h, w) or (r, k, h, w, 3), not {pixels.shape}")
    parts = zip(pixels, content["captions"], strict=True)
    rows = [f'<p class="note">{escape(str(name))}</p>{images({"images": row})}' for row, name in parts]
    return "".join(rows)


def heatmap(content: dict[str, Any]) -> str:
    """{"values": matrix, "rows": names, "columns": names}"""
    names = (content.get("row_label", ""), content.get("column_label", ""))
    return heat(content["values"], content.get("rows"), content.get("columns"), names)


def table(content: dict[str, Any]) -> str:
    """{"columns": names, "rows": [[...], ...]}; numbers stand to the right."""
    right = [
        " class=number" if all(is_number(v) for v in column) else "" for column in zip(*content["rows"], strict=True)
    ]
    right += [""] * (len(content["columns"]) - len(right))
    head = "".join(f"<th{side}>{escape(str(name))}</th>" for name, side in zip(content["columns"], right, strict=True))
    body = "".join(f"<tr>{''.join(cell(value) for value in row)}</tr>" for row in content["rows"])
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def cell(value: Any) -> str:
    if not is_number(value):
        return f"<td>{escape(str(value))}</td>"
    return f'<td class="number">{value:,}</td>' if isinstance(value, int) else f'<td class="number">{value:.5g}</td>'


def legend(series: list[Series]) -> str:
    """The names beside their colours."""
    keys = "".join(f'<span class="c{s.colour}"><i></i>{escape(s.label)}</span>' for s in series if s.form != "faint")
    return f'<p class="legend">{keys}</p>'


KINDS: dict[str, Callable[[Any], str]] = {
    "text": text,
    "confusion": confusion,
    "points": points,
    "curve": curve,
    "images": images,
    "sheet": sheet,
    "heatmap": heatmap,
    "table": table,
    "regions": regions,
    "against": against,
    "words": words,
    "masks": masks,
    "heads": heads,
    "tokens": tokens,
}
