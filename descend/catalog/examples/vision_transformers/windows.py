"""Worked examples of window-attention and swin: pairs, stages, parameters and multiplications."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs
from descend.models.swin import SIZES, PatchMerging, SwinForImageClassification, neighbours
from descend.theory import window_cost


def complexity(i: Inputs) -> Inputs:
    h, w, window = i["h"], i["w"], i["M"]
    all_pairs, local = window_cost.pairs(h, w), window_cost.window_pairs(h, w, window)
    return {
        "total_global_pairs": all_pairs,
        "total_window_pairs": local,
        "global_pairs_per_position": all_pairs // (h * w),
        "window_pairs_per_position": local // (h * w),
        "ratio": all_pairs // local,
        "macs_global_MSA": window_cost.attention_macs(h, w, i["C"]),
        "macs_window_MSA": window_cost.window_macs(h, w, i["C"], window),
    }


def merging(i: Inputs) -> Inputs:
    h, w, d = i["stage1"]
    with torch.device("meta"):
        x, layer = torch.empty(1, h, w, d), PatchMerging(d)
        four, after = neighbours(x), layer(x)
    return {
        "merged": list(four.shape[1:]),
        "dim_after_projection": after.shape[-1],
        "spatial": after.shape[1],
        "projection_weights": layer.reduce.weight.numel(),
    }


def swin_t(i: Inputs) -> Inputs:
    side, d, depths, window = i["input"], i["dim"], i["depths"], i["window"]
    stages = window_cost.stages(side, side, d, depths, window, i["patch"])
    with torch.device("meta"):
        model = SwinForImageClassification(SIZES["swin-tiny"])
        maps = model.eval().pyramid(torch.empty(1, 3, side, side))
    head = sum(p.numel() for part in (model.norm, model.head) for p in part.parameters())
    total = sum(p.numel() for p in model.parameters())
    return {
        "res": [m.shape[2] for m in maps],
        "dims": [m.shape[1] for m in maps],
        "windows_per_stage": [stage.windows for stage in stages],
        "params_1000_classes": total,
        "params_backbone_without_norm_head": total - head,
        "macs_224": window_cost.swin_macs(side, side, d, depths, window, i["patch"]),
    }


def flops(i: Inputs) -> Inputs:
    tiny = SIZES["swin-tiny"]
    macs = window_cost.swin_macs(i["H"], i["W"], tiny.width, tiny.depths, i["window"]) / 1e9
    return {"backbone_gmacs": macs, "backbone_gflops": 2 * macs}


def parts(i: Inputs) -> Inputs:
    return {"total_gflops": window_cost.total(i["parts"])}


EXAMPLES: dict[str, Compute] = {
    "MF-27.2.2-window-complexity": complexity,
    "MF-27.2.1-merging": merging,
    "MF-27.2.3-swin-t": swin_t,
    "MF-27.5.1-swin-flops": flops,
    "MF-27.5.1-swin-sum": parts,
}
SET_ASIDE: dict[str, str] = {}
