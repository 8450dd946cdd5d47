"""Worked examples of filters, convolution, the convolutional layer, its matrix, groups and separable layers."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from descend.catalog.examples import Compute, Inputs, real
from descend.nn.convolution.layers import SeparableConv2d
from descend.ops.images import filters
from descend.ops.images.convolution import (
    Slide,
    convolve,
    convolve_fully,
    correlation_at,
    cross_correlate,
    from_input_first,
    layer,
    same,
    toeplitz,
)
from descend.theory.convolution import (
    conv_flops,
    conv_parameters,
    conv_weights,
    dense_parameters,
    dense_weights,
    grouped_saving,
    output_size,
    remaining_share,
    separable_macs,
)


def handcrafted_filters(i: Inputs) -> Inputs:
    rising = real([i["step_rows"]] * 5)
    vertical = filters.kernel("vertical", torch.float64)
    ours = {name: filters.kernel(name, torch.float64) for name in i["kernels"]}
    assert all(torch.equal(w, real(i["kernels"][name])) for name, w in ours.items()), "the books' filters are others"
    return {
        "transpose_equal": torch.equal(filters.kernel("horizontal", torch.float64), vertical.T),
        "kernel_sums": {name: w.sum() for name, w in ours.items()},
        "rising_response": filters.apply(rising, vertical)[1],
        "falling_response": filters.apply(rising.flip(-1), vertical)[1],
    }


def symbolic(i: Inputs) -> Inputs:
    x, k = real(i["a..i"]).view(3, 3), real(i["j..m"]).view(2, 2)
    by_torch = F.conv2d(x[None, None], k[None, None])[0, 0]
    return {"printed_form": cross_correlate(x, k), "conv2d": by_torch}


def flip(i: Inputs) -> Inputs:
    x, k = real(i["x"]), real(i["k"])
    folded = convolve(x, k, same(k))
    return {
        "convolution": folded,
        "cross_correlation": cross_correlate(x, k, same(k)),
        "conv_equals_xcorr_of_flipped": torch.equal(folded, cross_correlate(x, k.flip(0), same(k))),
        "commutes": torch.equal(convolve_fully(x, k), convolve_fully(k, x)),
    }


def middle_term(i: Inputs) -> Inputs:
    x, k, n = real(i["x"]), real(i["k"]), i["n"]
    return {
        "right_value": correlation_at(x, k, n),
        "numpy": float(np.correlate(i["x"], i["k"], "same")[n]),
    }


def valid_length(i: Inputs) -> Inputs:
    lengths = range(1, 40)
    holds = all(output_size(t, s) == t - s + 1 for t in lengths for s in range(1, t + 1))
    return {"identity_holds": holds}


def not_flipped(i: Inputs) -> Inputs:
    x, w = torch.tensor(i["x"]), torch.tensor(i["w"])
    return {
        "eq_22_1": cross_correlate(x, w),
        "numpy_correlate_valid": np.correlate(i["x"], i["w"], "valid"),
        "numpy_convolve_valid": convolve(x, w),
    }


def one_filter(i: Inputs) -> Inputs:
    channels, height, width = i["input"]
    kernel = 5
    sides = [output_size(n, kernel, i["P"], i["S"]) for n in (height, width)]
    return {
        "filter": [channels, kernel, kernel],
        "output": [1, *sides],
        "params": conv_parameters(channels, 1, (kernel, kernel)),
        "width_if_filter_were_5x3": output_size(width, 3, i["P"], i["S"]),
    }


def six_filters(i: Inputs) -> Inputs:
    module = nn.Conv2d(i["input"][0], i["C_out"], i["K"], i["S"], i["P"])
    weight, bias = module.weight.detach(), module.bias
    out = layer(torch.zeros(1, *i["input"]), weight, bias, Slide(i["S"], i["P"]))
    return {
        "output": list(out.shape[1:]),
        "params": sum(p.numel() for p in module.parameters()),
        "formula": conv_parameters(i["input"][0], i["C_out"], (i["K"], i["K"])),
    }


def one_by_one(i: Inputs) -> Inputs:
    random = torch.Generator().manual_seed(0)
    x = torch.randn(1, i["C_in"], i["H"], i["W"], generator=random, dtype=torch.float64)
    w = torch.randn(i["C_out"], i["C_in"], generator=random, dtype=torch.float64)
    b = torch.randn(i["C_out"], generator=random, dtype=torch.float64)
    y = layer(x, w[:, :, None, None], b)
    gap = (y - F.linear(x.movedim(1, -1), w, b).movedim(-1, 1)).abs().max()
    assert gap < 1e-14, "1×1 convolution and dense layer differ"
    return {"output_shape": list(y.shape), "params": conv_parameters(i["C_in"], i["C_out"], (1, 1))}


def input_size(i: Inputs) -> Inputs:
    shape = (i["H"], i["W"], i["C"])
    weights = dense_weights(shape)
    return {
        "elements": weights,
        "dense_params_per_1000_units_with_bias": dense_parameters(shape, (1000,)),
        "hidden_units_to_exceed_1e6_weights": next(n for n in range(1, 100) if n * weights > 10**6),
    }


def parameters(i: Inputs) -> Inputs:
    c_in, c_out, side = i["C_in"], i["C_out"], (i["H"], i["W"])
    return {
        "conv": conv_parameters(c_in, c_out, (i["f"],) * 2),
        "fully_connected": dense_parameters((c_in, *side), (c_out, *side)),
        "conv_3_64_3": conv_parameters(3, 64, (3, 3)),
    }


def input_first(i: Inputs) -> Inputs:
    w, b = from_input_first(real(i["w"])), real(i["b"])
    out = layer(real(i["x"])[None], w, b, Slide(padding=i["padding"]))[0]
    return {"out_shape": list(out.shape), "out": out, "parameters": w.numel() + b.numel()}


def toeplitz_product(i: Inputs) -> Inputs:
    t = toeplitz(real(i["w"]), len(i["x"]), Slide(padding=i["padding"]))
    return {"T": t, "y": t @ real(i["x"])}


def depthwise(i: Inputs) -> Inputs:
    kernel, c_in, c_out = (i["K"],) * 2, i["C_in"], i["C_out"]
    return {
        "standard_weights": conv_weights(c_in, c_out, kernel),
        "depthwise_weights": conv_weights(c_in, c_in, kernel, groups=c_in),
        "reduction_factor": grouped_saving(c_in, c_out, kernel, groups=c_in),
        "grouped_G_equals_Cin_Cout128_factor": grouped_saving(c_in, 128, kernel, groups=c_in),
    }


def separable(i: Inputs) -> Inputs:
    kernel, out = (i["K"],) * 2, (i["H_out"], i["W_out"])
    c_in, c_out = i["C_in"], i["C_out"]
    cost = separable_macs(c_in, c_out, kernel, out)
    return {
        "standard": conv_flops(c_in, c_out, kernel, out),
        "depthwise": conv_flops(c_in, c_in, kernel, out, groups=c_in),
        "pointwise": conv_flops(c_in, c_out, (1, 1), out),
        "ratio": cost.remaining,
        "closed_form": remaining_share(c_out, i["K"]),
    }


def separable_layer(i: Inputs) -> Inputs:
    """Counted on the layer itself: every weight is multiplied once at every place."""
    places = i["H"] * i["W"]
    module = SeparableConv2d(i["C_in"], i["C_out"], i["f"])
    counted = (module.depthwise.weight.numel() + module.pointwise.weight.numel()) * places
    standard = module.dense_weight().numel() * places
    return {
        "standard_mults": standard,
        "separable_mults": counted,
        "ratio": counted / standard,
        "formula_1_over_Cout_plus_1_over_f2": remaining_share(i["C_out"], i["f"]),
        "speedup": standard / counted,
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-Filters-handcrafted": handcrafted_filters,
    "DLN-Conv-symbolic-3x3": symbolic,
    "DLN-Convolution-flip": flip,
    "DLN-Xcorr-middle-term": middle_term,
    "MF-22.1.1-valid-length": valid_length,
    "MF-22.1.1-cross-correlation": not_flipped,
    "DLN-ConvLayer-one-filter": one_filter,
    "DLN-ConvLayer-six-filters": six_filters,
    "DLN-Conv1x1-linear": one_by_one,
    "MF-22.0-input-dim": input_size,
    "S940-3.1-conv-parameters": parameters,
    "DLD-4.4-multichannel-index": input_first,
    "DLD-4.3-toeplitz": toeplitz_product,
    "MF-22.1.4-depthwise-reduction": depthwise,
    "MF-22.1.4-separable-flops": separable,
    "S940-3.5-depthwise-separable": separable_layer,
}

SET_ASIDE = {
    "DLN-Xcorr-middle-term:middle_term": "a formula in words; the docstring of ops.convolution states it",
    "DLN-Conv1x1-linear:max_abs_difference": "a rounding error of inputs that are not given; here it is below 1e-14",
}
