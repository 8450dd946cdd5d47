"""Worked examples of sizes and strides, pooling, equivariance, receptive fields, and dense layers on images."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.catalog.examples import Compute, Inputs, real
from descend.metrics.equivariance import equivariance_error, shift_circular, turn_quarters
from descend.ops.images.convolution import Slide, layer, pad_axes
from descend.ops.images.pooling import average_pool, max_pool
from descend.theory.convolution import (
    dense_weights,
    exact_size,
    layers_needed,
    output_size,
    receptive_field,
    same_padding,
    whole_size,
)
from descend.theory.network import measure_field


def valid(i: Inputs) -> Inputs:
    return {"output": [whole_size(n, i["K"]) for n in (i["H"], i["W"])]}


def same_grid(i: Inputs) -> Inputs:
    grid = real(i["grid"])
    p = same_padding(i["K"])
    inner = grid[p:-p, p:-p]
    return {
        "P": p,
        "output": [whole_size(n, i["K"], p) for n in inner.shape],
        "pad_reproduces_grid": torch.equal(pad_axes(inner, p, 2), grid),
    }


def fits(i: Inputs) -> bool:
    try:
        whole_size(i["N"], i["K"], i["P"], i["S"])
    except ValueError:
        return False
    return True


def stride(i: Inputs) -> Inputs:
    sizes = i["N"], i["K"], i["P"], i["S"]
    return {"output": float(exact_size(*sizes)), "valid": fits(i), "pytorch_floor": output_size(*sizes)}


def stride_padded(i: Inputs) -> Inputs:
    return {"output": float(whole_size(i["N"], i["K"], i["P"], i["S"]))}


def reduction(i: Inputs) -> Inputs:
    return {"factor": [output_size(i["N"], i["K"], i["P"], s) / i["N"] for s in i["S"]]}


def stride_and_dilation(i: Inputs) -> Inputs:
    x, w = real(i["x"])[None, None], real(i["w"])[None, None]
    found = [layer(x, w, None, Slide(s, p, d))[0, 0] for s, d, p in i["stride_dilation_padding"]]
    return {"outputs": found, "shapes": [list(y.shape) for y in found]}


def pooling_size(i: Inputs) -> Inputs:
    pool = nn.MaxPool2d(i["window"], i["stride"])
    out = max_pool(torch.zeros(1, *i["input"]), i["window"], i["stride"])
    return {"output": list(out.shape[1:]), "params": sum(p.numel() for p in pool.parameters())}


def pooling_stride(i: Inputs) -> Inputs:
    x = real(i["x"])[None, None]
    return {
        "stride1": max_pool(x, i["window"], 1)[0, 0],
        "stride2": max_pool(x, i["window"], 2)[0, 0],
        "avg_stride2": average_pool(x, i["window"], 2)[0, 0],
    }


def circular(x: Tensor, w: Tensor, step: int = 1) -> Tensor:
    p = w.shape[-1] // 2
    return layer(F.pad(x, (p, p, p, p), mode="circular"), w, None, Slide(step))


def equivariance(i: Inputs) -> Inputs:
    random = torch.Generator().manual_seed(i["seed"])
    x = torch.randn(1, 1, *i["image"], generator=random, dtype=torch.float64)
    w = torch.randn(1, 1, 3, 3, generator=random, dtype=torch.float64)
    maps = torch.zeros(len(i["feature_positions"]), 1, 4, 4, dtype=torch.float64)
    for one, (row, column) in zip(maps, i["feature_positions"], strict=True):
        one[0, row, column] = 5.0
    return {
        "equivariance_difference": equivariance_error(
            lambda z: circular(z, w), x, lambda z: shift_circular(z, i["shift"])
        ),
        "pooled_outputs": max_pool(maps, 2)[:, 0],
    }


def translation(i: Inputs) -> Inputs:
    x, w, v = real(i["image_values"])[None, None], real(i["kernel"])[None, None], i["shift"]
    move = lambda z: shift_circular(z, v)
    zero = lambda z: layer(z, w, None, Slide(padding=1))
    strided = lambda z: circular(z, w, 2)
    return {
        "circular_padding": equivariance_error(lambda z: circular(z, w), x, move),
        "zero_padding_interior": equivariance_error(zero, x, move, border=1 + max(v)),
        "zero_padding_whole_map": equivariance_error(zero, x, move),
        "stride2_shift1": equivariance_error(strided, x, lambda z: shift_circular(z, (1, 0))),
        "stride2_shift2_output_shift1": equivariance_error(
            strided, x, lambda z: shift_circular(z, (2, 2)), lambda y: shift_circular(y, (1, 1))
        ),
    }


def rotation(i: Inputs) -> Inputs:
    x, w = real(i["x"])[None, None], real(i["w"])[None, None]
    valid_layer = lambda z: layer(z, w)
    return {
        "max_equivariance_error": equivariance_error(valid_layer, x, turn_quarters),
        "global_max_original": valid_layer(x).max(),
        "global_max_rotated": valid_layer(turn_quarters(x)).max(),
    }


def stack(depth: int, kernel: int) -> nn.Sequential:
    torch.manual_seed(depth)
    return nn.Sequential(*(nn.Conv2d(1, 1, kernel, padding=kernel // 2) for _ in range(depth))).double()


def field(i: Inputs) -> Inputs:
    side = 2 * max(i["L"]) * (i["K"] - 1) + 1
    return {
        "formula": [receptive_field([(i["K"],)] * depth).size for depth in i["L"]],
        "gradient_support": [measure_field(stack(depth, i["K"]), (1, side, side), 2)[0] for depth in i["L"]],
    }


def far(i: Inputs) -> Inputs:
    """The depths 1, 2, 5, 10 of the second row are the recomputation's; the inputs do not give them."""
    depths = [layers_needed(d, i["kernel"]) for d in i["distances"]]
    for depth, distance in zip(depths, i["distances"], strict=True):
        reach = measure_field(stack(depth, i["kernel"]), (1, 4 * distance + 3, 4 * distance + 3), 2)[0] // 2
        assert reach >= distance > reach - i["kernel"] // 2, "the gradient reaches elsewhere"
    return {
        "depth_needed": depths,
        "receptive_field_after_L": [receptive_field([(i["kernel"],)] * depth).size for depth in (1, 2, 5, 10)],
    }


def dense(i: Inputs) -> Inputs:
    return {"weights": dense_weights(i["shape"])}


EXAMPLES: dict[str, Compute] = {
    "DLN-Conv-6x6-3x3": valid,
    "DLN-Padding-same-grid": same_grid,
    "DLN-Stride-7x7-S1": stride,
    "DLN-Stride-7x7-S2": stride,
    "DLN-Stride-7x7-S3": stride,
    "DLN-Stride-7x7-S3-P1": stride_padded,
    "DLN-Stride-reduction": reduction,
    "DLD-4.3-conv-stride-dilation": stride_and_dilation,
    "DLN-Pooling-8x64x64": pooling_size,
    "DLD-4.5-pooling-stride": pooling_stride,
    "DLN-CNN-equivariance-invariance": equivariance,
    "S940-3.1-translation-equivariance": translation,
    "DLD-4.8-rotation": rotation,
    "DLN-ReceptiveField-K3": field,
    "DLD-4.8-receptive-field": far,
    "DLN-CNN-fc-weights-cifar": dense,
    "DLN-CNN-fc-weights-256": dense,
}

SET_ASIDE: dict[str, str] = {}
