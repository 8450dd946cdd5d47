"""Non-maximum suppression by compiled code (nms.cpp). `ops/nms.py` says what it computes, and does it without, too."""

from __future__ import annotations

from ctypes import c_double, c_int64, c_void_p

import torch
from torch import Tensor

from descend.native.build import library

TYPES = (torch.float32, torch.float64)


def scan(boxes: Tensor, scores: Tensor, groups: Tensor, tau: float) -> Tensor | None:
    """The numbers of the boxes (n, 4) that are kept, by score; None where there is no compiled code for such."""
    compiled = library() if boxes.dtype in TYPES and boxes.device.type == "cpu" and len(boxes) < 2**31 else None
    if compiled is None:
        return None
    boxes, scores, groups = boxes.contiguous(), scores.to(boxes.dtype).contiguous(), groups.long().contiguous()
    kept = torch.empty(len(boxes), dtype=torch.long)
    run = compiled.nms_float32 if boxes.dtype == torch.float32 else compiled.nms_float64
    run.restype = c_int64
    pointers = [c_void_p(x.data_ptr()) for x in (boxes, scores, groups, kept)]
    return kept[: run(c_int64(len(boxes)), *pointers[:3], c_double(tau), pointers[3])]
