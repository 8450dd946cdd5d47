"""What verification shows: how far apart pairs lie, and pairs that were told wrongly."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from descend.contracts import Batch, Exhibit
from descend.data.images.labelled import Preprocessing
from descend.metrics.verification import best_threshold
from descend.views.representation import to_pixels

Measure = Callable[[Batch], Tensor]
BINS, SHOWN = 24, 8


@torch.no_grad()
def measure_pairs(measure: Measure, batches: Sequence[Batch], known: bool) -> tuple[Tensor, Tensor]:
    """Distances and which pairs are the same, of the known pairs or of the others."""
    chosen = [batch for batch in batches if bool(batch["known"].all()) == known]
    return torch.cat([measure(batch) for batch in chosen]), torch.cat([b["y1"] == b["y2"] for b in chosen])


def show_distances(measure: Measure, batches: Sequence[Batch]) -> Exhibit:
    """How many same and different pairs there are at each distance."""
    d, same = measure_pairs(measure, batches, known=False)
    threshold = best_threshold(*measure_pairs(measure, batches, known=True))
    edges = torch.linspace(0, float(d.max()), BINS + 1)
    counts = {
        name: torch.histc(d[kind], BINS, 0, float(d.max())).tolist()
        for name, kind in (("same", same), ("different", ~same))
    }
    content = {"x": ((edges[1:] + edges[:-1]) / 2).tolist(), "y": counts, "x_label": "distance", "y_label": "pairs"}
    return Exhibit("curve", "Distances of pairs", content, f"Taken for the same up to {threshold:.3f}.")


def show_pairs(measure: Measure, batches: Sequence[Batch], prepare: Preprocessing) -> Exhibit:
    """The same pairs that lie farthest apart, and the different ones that lie nearest."""
    d, same = measure_pairs(measure, batches, known=False)
    others = [batch for batch in batches if not batch["known"].all()]
    x1, x2 = (torch.cat([batch[name] for batch in others]) for name in ("x1", "x2"))
    far = d.masked_fill(~same, -torch.inf).topk(min(SHOWN // 2, int(same.sum()))).indices
    near = (-d).masked_fill(same, -torch.inf).topk(min(SHOWN // 2, int((~same).sum()))).indices
    rows = torch.cat([far, near])
    pixels = to_pixels(torch.stack([x1[rows], x2[rows]], dim=1).flatten(0, 1), prepare)
    captions = [f"{'same' if same[i] else 'different'}, {d[i]:.2f}" for i in rows.tolist() for _ in (1, 2)]
    return Exhibit("images", "Hardest pairs", {"images": pixels, "captions": captions}, "Held-out pairs, side by side.")
