"""The confusion matrix of a detector: C[a, b] = true objects of class a that were called b.

    last column   "missed"     true objects that nothing was found for
    last row      "invented"   found boxes where there is nothing

A found box counts from a score of `least` on, and speaks of a true one from an IoU on (`pairing.py`). What lies in a
crowd of its class counts for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from descend.metrics.detection.evidence import DetectionEvidence, lay_end_to_end
from descend.metrics.detection.pairing import lies_in_crowd, pair_by_class

MISSED, INVENTED = "missed", "invented"


def count_confusions(
    evidence: Sequence[DetectionEvidence], classes: int, least: float = 0.25, iou: float = 0.5
) -> Tensor:
    """C (classes + 1, classes + 1) of a set."""
    flat = lay_end_to_end(evidence, classes)
    right, other = pair_by_class(flat, least, iou)
    found, truth = (torch.cat([a, b]) for a, b in ((right.found, other.found), (right.truth, other.truth)))
    called = torch.full_like(flat.true_classes, classes)
    called[truth] = flat.classes[found]
    invented = (flat.scores >= least) & ~lies_in_crowd(flat)
    invented[found] = False
    rows = torch.cat([flat.true_classes[~flat.crowd], torch.full((int(invented.sum()),), classes)])
    columns = torch.cat([called[~flat.crowd], flat.classes[invented]])
    return (rows * (classes + 1) + columns).bincount(minlength=(classes + 1) ** 2).view(classes + 1, classes + 1)
