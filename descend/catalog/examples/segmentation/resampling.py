"""Worked examples of unpooling and transposed convolution."""

from __future__ import annotations

from torch.nn import functional as F

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.images.convolution import Slide
from descend.ops.images.pooling import average_pool, max_pool
from descend.ops.images.resampling import average_unpool, max_unpool_first, transposed_convolution
from descend.theory.convolution import transposed_size


def averages(i: Inputs) -> Inputs:
    large = average_unpool(real(i["x"]), 2)
    return {"upsampled": large[0, 0], "after_average_pool": average_pool(large, 2)[0, 0]}


def maxima(i: Inputs) -> Inputs:
    large = max_unpool_first(real(i["x"]), 2)
    return {"upsampled": large[0, 0], "after_max_pool": max_pool(large, 2)[0, 0]}


def adjoint(i: Inputs) -> Inputs:
    x, w = real(i["input"])[None, None], real(i["kernel"])
    y = transposed_convolution(x, w, None, Slide(i["stride"]))
    gap = (y - F.conv_transpose2d(x, w, stride=i["stride"])).abs().max()
    side = transposed_size(x.shape[-1], w.shape[-1], 0, i["stride"])
    return {"output": y[0, 0], "max_abs_difference": gap, "output_size": side}


EXAMPLES: dict[str, Compute] = {
    "DLN-Upsample-average": averages,
    "DLN-Upsample-max": maxima,
    "DLN-TransposeConv-matrix": adjoint,
}

SET_ASIDE: dict[str, str] = {}
