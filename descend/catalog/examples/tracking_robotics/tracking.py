"""Worked examples of multi-object-tracking."""

from __future__ import annotations

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.detection.hungarian import greedy_assign, total_cost
from descend.ops.tracking.association import match


def tracking(i: Inputs) -> Inputs:
    """Three detections, two tracks; the third detection is left."""
    cost = real(i["C"])
    rows, columns = match(cost)
    left = sorted(set(range(len(cost))) - set(rows.tolist()))
    return {
        "pairs_det_track": [list(pair) for pair in zip(rows.tolist(), columns.tolist(), strict=True)],
        "costs": cost[rows, columns].tolist(),
        "total": total_cost(cost, rows, columns),
        "greedy_total": total_cost(cost, *greedy_assign(cost)),
        "unmatched_det": left[0],
    }


EXAMPLES: dict[str, Compute] = {"MF-30.4.3-tracking": tracking}

SET_ASIDE: dict[str, str] = {}
