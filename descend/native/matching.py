"""Which of the boxes found in an image are right: compiled code for scores of detectors (matching.cpp).

`metrics/detection/matching.py` says what it computes, and does the same without it.
"""

from __future__ import annotations

from ctypes import Structure, byref, c_int, c_int64, c_void_p

import torch
from torch import Tensor

from descend.native.build import library


class _Matching(Structure):
    _fields_ = [
        *((name, c_int64) for name in ("groups", "found", "truths", "ranges", "thresholds")),
        *((name, c_void_p) for name in ("found_start", "truth_start", "boxes", "true_boxes", "crowd")),
        *((name, c_void_p) for name in ("ignored", "outside", "least", "verdict")),
    ]


def match_found(
    starts: tuple[Tensor, Tensor],
    boxes: tuple[Tensor, Tensor],
    crowd: Tensor,
    outside: tuple[Tensor, Tensor],
    least: Tensor,
) -> Tensor | None:
    """Verdicts (ranges, thresholds, n) on n found boxes; None where there is no compiled code.

    Starts of every group (groups + 1), boxes (n, 4) and (m, 4) in float64, crowd (m); what does not count of the found
    and of the true, (ranges, n) and (ranges, m); the least IoU (thresholds).
    """
    compiled = library()
    if compiled is None:
        return None
    found_start, truth_start = (x.long().contiguous() for x in starts)
    found, truth = (x.double().contiguous() for x in boxes)
    dead, ignored = (x.to(torch.uint8).contiguous() for x in outside)
    flags, least = crowd.to(torch.uint8).contiguous(), least.double().contiguous()
    ranges, n = dead.shape
    verdict = torch.empty(ranges, len(least), n, dtype=torch.uint8)
    parts = (found_start, truth_start, found, truth, flags, ignored, dead, least, verdict)
    sizes = (len(found_start) - 1, n, len(truth), ranges, len(least))
    compiled.match_found(byref(_Matching(*sizes, *(x.data_ptr() for x in parts))), c_int(torch.get_num_threads()))
    return verdict
