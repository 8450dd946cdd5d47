"""Text as a model sees it: a picture of every head's attention, and each token with its probability."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import numpy as np

from descend.report.heat import png, tint


def heads(content: dict[str, Any]) -> str:
    """{"tokens": names, "layers": {name: (h, t, s)}}: a row of pictures for each layer, queries downward."""
    tokens = " ".join(escape(str(token)) for token in content["tokens"])
    rows = []
    for name, maps in content["layers"].items():
        weights = np.asarray(maps, dtype=float)
        if weights.ndim != 3:
            raise ValueError(f"{name}: maps are (heads, t, s), not shape {weights.shape}")
        cells = [
            f'<figure><img src="{png(tint(a / (a.max() or 1)))}" alt=""><figcaption>head {i}</figcaption></figure>'
            for i, a in enumerate(weights)
        ]
        rows.append(
            f'<p class="note">{escape(name)}</p><div class="images" style="--side:112px">{"".join(cells)}</div>'
        )
    return f'<p class="note">{tokens}</p>{"".join(rows)}'


def tokens(content: list[dict[str, Any]]) -> str:
    """[{"token", "p", "best": [[token, p], ..]}]: the darker, the less expected; the mouse shows what was."""
    spans = []
    for item in content:
        p = float(item["p"])
        bits = -math.log2(max(p, 2.0**-16))
        best = ", ".join(f"{token} {share:.0%}" for token, share in item["best"])
        said = escape(f"p = {p:.3g}; likeliest: {best}")
        spans.append(
            f'<span style="background:rgba(214,104,32,{min(bits / 12, 0.85):.2f})" title="{said}">'
            f"{escape(str(item['token']))}</span>"
        )
    return f"<pre>{''.join(spans)}</pre>"
