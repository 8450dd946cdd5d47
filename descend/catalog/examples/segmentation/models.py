"""Worked examples of the segmentation models."""

from __future__ import annotations

import torch
from torch import nn

from descend.catalog.examples import Compute, Inputs
from descend.models.fcn import FCN, FCNConfig
from descend.models.vgg import VGG, VGGConfig


def strides(i: Inputs) -> Inputs:
    """The three variants, built without memory and run on one image of the size given."""
    with torch.device("meta"):
        image = torch.empty(1, 3, i["input"], i["input"])
        models = {f"FCN-{s}s": FCN(FCNConfig(classes=i["classes"] + 1, stride=s)) for s in (32, 16, 8)}
        pools = models["FCN-8s"].pools(image)
        sizes = [model(image).shape[-1] for model in models.values()]
    return {
        "channels": models["FCN-8s"].score.out_channels,
        "map_sizes": {f"pool{k}": pools[k - 1].shape[-1] for k in (3, 4, i["pools"])},
        "final_upsampling": {name: model.config.stride for name, model in models.items()},
        "sizes_after_final": sizes,
    }


def dense_as_convolution(i: Inputs) -> Inputs:
    """fc6 of VGG-16 as a dense layer, as the 7×7 convolution it becomes, and as the 1×1 that DLN prints."""
    channels, side, _ = i["fc6_input"]
    widths, units = (*FCNConfig().widths[:-1], channels), i["fc6_units"]
    with torch.device("meta"):
        dense = VGG(VGGConfig(widths=widths, grid=side, hidden=units)).f6
        wide, point = (FCN(FCNConfig(widths=widths, kernel=k, hidden=units)).fc6 for k in (side, 1))
    layers: dict[str, nn.Module] = {"fc6_params": dense, "conv7x7_params": wide, "conv1x1_params": point}
    return {name: sum(p.numel() for p in layer.parameters()) for name, layer in layers.items()}


EXAMPLES: dict[str, Compute] = {"DLN-FCN-strides": strides, "DLN-FCN-fc-to-conv": dense_as_convolution}
SET_ASIDE: dict[str, str] = {}
