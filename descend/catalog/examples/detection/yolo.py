"""Worked examples of the YOLO family."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from descend.catalog.examples import Compute, Inputs, real
from descend.losses.detection.yolo_chapter import class_error, objectness_error, root_size_loss
from descend.models.csp_darknet import CspDarknet, CspDarknetConfig
from descend.models.yolo_v1 import YoloV1Config
from descend.models.yolo_v2 import YoloV2, YoloV2Config
from descend.models.yolo_v3 import YoloV3, YoloV3Config
from descend.models.yolo_v4 import YoloV4, YoloV4Config
from descend.nn.detection.csp import CspBlock, CspEntryBlock, DarknetResidual, leaky_unit
from descend.nn.detection.heads import GridHead
from descend.ops.detection.yolo_grid import Grid, decode_cells, encode_cells, make_cells
from descend.weights.labels import Labels


def name_classes(count: int) -> Labels:
    return Labels(tuple(f"LABEL_{k}" for k in range(count)))


def v1_output(i: Inputs) -> Inputs:
    config = YoloV1Config(boxes=i["B"], labels=name_classes(i["C"]))
    rows, columns = config.grid
    return {"channels": config.numbers, "values": rows * columns * config.numbers}


def v2_output(i: Inputs) -> Inputs:
    with torch.device("meta"):
        model = YoloV2(YoloV2Config(anchors=(1.0,) * (2 * i["anchors"]), labels=name_classes(i["C"])))
        (maps,) = model.score_maps(torch.empty(1, 3, 32 * i["S"], 32 * i["S"]))
    return {"channels": maps.shape[1], "grid": maps.shape[2], "boxes": i["anchors"] * maps.shape[2] * maps.shape[3]}


def exp_gradient(i: Inputs) -> Inputs:
    slopes = []
    for t in i["t_w"]:
        code = real([[0.0, 0.0, t, t]]).requires_grad_()
        width = decode_cells(code, one_cell((0, 0), (i["p_w"], i["p_w"]), 1))[0, 2]
        slopes.append(torch.autograd.grad(width, code)[0][0, 2])
    return {"db_dt": torch.stack(slopes), "positive": True, "growth_factor_t0_to_t5": slopes[-1] / slopes[0]}


def inverse(i: Inputs) -> Inputs:
    grid = one_cell((0, 0), (i["p_w"], i["p_w"]), 32)
    code = real([[0.0, 0.0, i["t_w"], i["t_w"]]])
    return {"t_w": encode_cells(decode_cells(code, grid), grid)[0, 2]}


def v3_grids(i: Inputs) -> Inputs:
    with torch.device("meta"):
        model = YoloV3(YoloV3Config(anchors=(1.0,) * (6 * i["anchors"]), labels=name_classes(i["C"])))
        image = torch.empty(1, 3, i["input"], i["input"])
        maps, found = model.score_maps(image), model(image)
    return {
        "grids": [m.shape[2] for m in reversed(maps)],
        "boxes_total": found.boxes.shape[1],
        "channels": maps[0].shape[1],
    }


def count_products(module: nn.Module, channels: int, side: int) -> int:
    """Multiplications of a module's convolutions on one image, as they are run."""
    with FlopCounterMode(display=False) as counter, torch.device("meta"):
        module.to("meta")(torch.empty(1, channels, side, side))
    return int(counter.get_total_flops()) // 2


def csp_flops(i: Inputs) -> Inputs:
    n, c, side = i["residual_blocks_n"], 16, 8
    unit, half = c * c * side * side, c // 2
    plain = count_products(nn.Sequential(*(DarknetResidual(c, half) for _ in range(n))), c, side)
    inner = nn.Sequential(*(DarknetResidual(half, half) for _ in range(n)))
    inside = count_products(inner, half, side)
    split = count_products(CspBlock(inner, leaky_unit(c, c)), c, side)
    entered = count_products(CspEntryBlock(c, c, half, inner, leaky_unit), c, side)
    dense, thin = (count_products(nn.Conv2d(w, w, 3, padding=1), w, side) for w in (c, half))
    return {
        "reduction": 1 - inside / plain,
        "reduction_with_transition": 1 - split / plain,
        "reduction_with_two_entry_1x1_and_transition": 1 - entered / plain,
        "plain": plain / unit,
        "csp_F": inside / unit,
        "reduction_if_F_is_plain_CxC_convs": 1 - thin / dense,
    }


def csp_gradient(i: Inputs) -> Inputs:
    torch.manual_seed(i["seed"])
    kept = i["x1_channels"]
    inner, transition = nn.Conv2d(kept, kept, 3, padding=1).double(), nn.Conv2d(2 * kept, 2 * kept, 1).double()
    block, x = CspBlock(inner, transition), torch.randn(1, 2 * kept, 5, 5, dtype=torch.float64, requires_grad=True)
    before = torch.autograd.grad(block(x).sum(), x)[0][:, :kept]
    with torch.no_grad():
        inner.weight *= 50
    after = torch.autograd.grad(block(x).sum(), x)[0][:, :kept]
    part = transition.weight.sum(dim=0)[:kept].expand_as(before)
    return {
        "independent_of_F": torch.equal(before, after),
        "max_abs_difference": (before - after).abs().max(),
        "equals_transition_slice": bool(torch.allclose(before, part)),
    }


def cell_size(i: Inputs) -> Inputs:
    grid = make_cells([(i["S"], i["S"])], [i["input"] // i["S"]], torch.ones(1, 1, 2))
    return {"cell_size": grid.strides[0]}


def per_cell(i: Inputs) -> Inputs:
    with torch.device("meta"):
        maps = GridHead(8, i["B"], i["K"])(torch.empty(1, 8, i["S"], i["S"]))
    _, channels, rows, columns = maps.shape
    return {
        "per_cell": channels,
        "shape": [rows, columns, channels],
        "boxes": rows * columns * i["B"],
        "values": maps.numel(),
    }


def backbone(i: Inputs) -> Inputs:
    a, b, c, d, e = i["channels"]
    with torch.device("meta"):
        model = CspDarknet(CspDarknetConfig(stem=a // 2, widths=(a, b, c, d, e), depths=(1,) * 5))
        maps = model.backbone(torch.empty(1, 3, i["input"], i["input"]))
    last = maps[-1]
    return {"sizes": [m.shape[2] for m in maps], "F5": [last.shape[2], last.shape[3], last.shape[1]]}


def heads(i: Inputs) -> Inputs:
    with torch.device("meta"):
        layers = [GridHead(width, 3, i["out"] // 3 - 5) for width in i["in_channels"]]
        inputs = [torch.empty(1, w, g, g) for w, g in zip(i["in_channels"], i["grids"], strict=True)]
        maps = [layer(x) for layer, x in zip(layers, inputs, strict=True)]
    return {
        "out_shapes": [[m.shape[2], m.shape[3], m.shape[1]] for m in maps],
        "head_params_1x1_with_bias": [sum(p.numel() for p in layer.parameters()) for layer in layers],
    }


def box_count(i: Inputs) -> Inputs:
    with torch.device("meta"):
        model = YoloV4(YoloV4Config(anchors=(1.0,) * (6 * i["B"]), labels=name_classes(80)))
        side = 32 * i["grids"][0]
        maps = model.score_maps(torch.empty(1, 3, side, side))
    counts = [m.shape[2] * m.shape[3] * i["B"] for m in maps]
    return {"P3": counts[0], "P4": counts[1], "P5": counts[2], "total": sum(counts)}


def square_root(i: Inputs) -> Inputs:
    w = real(i["w"])
    pair = lambda x: torch.stack([x, torch.ones_like(x)], dim=-1)
    relative = root_size_loss(pair(w * (1 + i["rel_error"])), pair(w))
    absolute = root_size_loss(pair(w + i["abs_error"]), pair(w))
    plain = (w * i["rel_error"]).square()
    return {
        "loss_rel10pct": relative,
        "ratio_large_over_small_rel_error": relative[1] / relative[0],
        "plain_squared_ratio": plain[1] / plain[0],
        "loss_abs5": absolute,
        "ratio_small_over_large_abs_error": absolute[0] / absolute[1],
    }


def one_cell(cell: tuple[int, int], anchor: tuple[float, float], stride: float) -> Grid:
    return Grid(real([cell]), real([anchor]), real([stride]))


def decode(i: Inputs) -> Inputs:
    t = real([i["t"]])
    b_x, b_y, b_w, b_h = decode_cells(t, one_cell(i["cell"], i["p"], 1))[0]
    return {
        "sigma_tx": b_x - i["cell"][0],
        "sigma_ty": b_y - i["cell"][1],
        "b_x": b_x,
        "b_y": b_y,
        "exp_tw": b_w / i["p"][0],
        "exp_th": b_h / i["p"][1],
        "b_w": b_w,
        "b_h": b_h,
    }


WALKTHROUGH = (6, 6), (16.0, 16.0), [0.1, 0.2, 0.5, 0.6]
"""Cell, anchor and code of MF 28.1.3."""


def walkthrough_box(stride: float = 32) -> Tensor:
    cell, anchor, code = WALKTHROUGH
    return decode_cells(real([code]), one_cell(cell, anchor, stride))[0]


def pixels(i: Inputs) -> Inputs:
    return {"box": walkthrough_box(i["s"])}


def box_loss(i: Inputs) -> Inputs:
    size, true = real([i["w"], i["h"]]), real([i["w_star"], i["h_star"]])
    same = lambda k: root_size_loss(size[[k, k]], true[[k, k]]) / 2
    unrounded = root_size_loss(walkthrough_box()[2:], true)
    return {
        "L_box": root_size_loss(size, true),
        "term_w": same(0),
        "term_h": same(1),
        "L_box_unrounded_box": unrounded,
    }


def objectness(i: Inputs) -> Inputs:
    return {"L_obj": objectness_error(real(i["o"]), torch.tensor(True))}


def classes(i: Inputs) -> Inputs:
    c, true = real(i["c"]), real(i["target"])
    first, second = (class_error(c[[k]], true[[k]]) for k in (0, 1))
    return {"t1": first, "t2": second, "L_cls": class_error(c, true)}


def total(i: Inputs) -> Inputs:
    return {"L": i["lambda_box"] * i["L_box_printed"] + i["lambda_obj"] * i["L_obj"] + i["lambda_cls"] * i["L_cls"]}


def corrected_total(i: Inputs) -> Inputs:
    true, rest = real([80.0, 80.0]), i["L_obj"] + i["L_cls"]
    box, unrounded = (root_size_loss(size, true) for size in (real([26.0, 29.0]), walkthrough_box()[2:]))
    return {"L": i["lambda_box"] * box + rest, "L_unrounded_box": i["lambda_box"] * unrounded + rest}


EXAMPLES: dict[str, Compute] = {
    "MF-24.1.1-v1-output": v1_output,
    "MF-24.1.2-v2-output": v2_output,
    "MF-24.1.2-exp-gradient": exp_gradient,
    "MF-24.1.2-inverse": inverse,
    "MF-24.1.3-grids": v3_grids,
    "MF-24.1.4-csp-flops": csp_flops,
    "MF-24.1.4-csp-gradient": csp_gradient,
    "MF-24.4.1-cell-size": cell_size,
    "MF-24.4.1-per-cell": per_cell,
    "MF-24.5.2-sqrt-weight": square_root,
    "MF-24.6.1-backbone": backbone,
    "MF-24.6.1-heads": heads,
    "MF-24.6.2-box-count": box_count,
    "MF-28.1.3-decode": decode,
    "MF-28.1.3-pixels": pixels,
    "MF-28.1.4-box-loss": box_loss,
    "MF-28.1.4-obj-loss": objectness,
    "MF-28.1.4-cls-loss": classes,
    "MF-28.1.5-total": total,
    "MF-28.1.5-total-corrected": corrected_total,
}
SET_ASIDE: dict[str, str] = {
    "MF-27.5.1-yolo-flops": "the book gives neither the blocks of its CSPDarknet nor the neck's widths",
}
