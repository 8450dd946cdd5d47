"""Text as a model sees it: an image of every head's attention, and each token with its probability."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from descend.web.markup import Html, html, join
from descend.web.parts import make_images, make_note
from descend.web.pixels import encode_png, tint


def draw_heads(content: dict[str, Any]) -> Html:
    """{"tokens": names, "layers": {name: (h, t, s)}}: a row of images for each layer, queries downward."""
    rows = [make_note(" ".join(str(token) for token in content["tokens"]))]
    for name, maps in content["layers"].items():
        weights = np.asarray(maps, dtype=float)
        if weights.ndim != 3:
            raise ValueError(f"{name}: maps are (heads, t, s), not shape {weights.shape}")
        images = [encode_png(tint(a / (a.max() or 1))) for a in weights]
        rows += [make_note(name), make_images(images, [f"head {i}" for i in range(len(images))], 112)]
    return join(rows)


def shade_tokens(content: list[dict[str, Any]]) -> Html:
    """[{"token", "p", "best": [[token, p], ..]}]: the darker, the less expected; the mouse shows what was."""
    spans = []
    for item in content:
        p = float(item["p"])
        bits = -math.log2(max(p, 2.0**-16))
        best = ", ".join(f"{token} {share:.0%}" for token, share in item["best"])
        shade = abs(min(bits / 12, 0.85))
        said = f"p = {p:.3g}; most likely: {best}"
        cell = '<span style="background:rgba(214,104,32,{:.2f})" title="{}">{}</span>'
        spans.append(html(cell, shade, said, str(item["token"])))
    return html("<pre>{}</pre>", spans)
