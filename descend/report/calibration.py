"""The reliability diagram: how often a classifier is right, by how sure it says it is."""

from __future__ import annotations

from typing import Any

from descend.web.axes import BOTTOM, LEFT, RIGHT, TOP, Axis
from descend.web.chart import Series, draw_over, name_series
from descend.web.markup import Html, html, join

SIZE = (560, 420)
FAINT, FULL = 0.15, 0.85  # opacity of a bar of few and of most examples


def draw_reliability(content: dict[str, Any]) -> Html:
    """{"count", "confidence", "accuracy": one value for each bin of confidence 0..1, "of": "images"}

    A bar is as high as the bin's accuracy, and the darker, the more examples it has. Dots stand at the mean confidence.
    """
    count = [int(n) for n in content["count"]]
    sure, right = ([float(v) for v in content[name]] for name in ("confidence", "accuracy"))
    if not len(count) == len(sure) == len(right) or not any(count):
        raise ValueError(f"{len(count)} counts, {len(sure)} confidences and {len(right)} accuracies")
    across, up = Axis(0.0, 1.0, LEFT, SIZE[0] - RIGHT), Axis(0.0, 1.0, SIZE[1] - BOTTOM, TOP)
    bars = []
    for k, n in enumerate(count):
        if n:
            low, high = k / len(count), (k + 1) / len(count)
            said = f"confidence {low:.2g} to {high:.2g}: {n:,} {content['of']}, {right[k]:.1%} correct"
            place = across.at(low) + 1, up.at(right[k]), across.at(high) - across.at(low) - 2
            shade = FAINT + (FULL - FAINT) * n / max(count)
            cell = '<rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" opacity="{:.2f}">'
            cell += "<title>{}</title></rect>"
            bars.append(html(cell, *place, up.start - up.at(right[k]), shade, said))
    filled = [k for k, n in enumerate(count) if n]
    series = [
        Series("accuracy at the mean confidence", [sure[k] for k in filled], [right[k] for k in filled], "points", 0),
        Series("perfect calibration", [0.0, 1.0], [0.0, 1.0], "line", 1),
    ]
    drawn = draw_over(series, across, up, SIZE, ("confidence", "accuracy"), back=join(bars))
    return html('{}<div class="square">{}</div>', name_series(series), drawn)
