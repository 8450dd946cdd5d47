"""Worked examples of the classic networks: the typical CNN, AlexNet, VGG."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from descend.catalog.examples import Compute, Inputs
from descend.metrics.comparison import differences
from descend.models.alexnet import SIZES as ALEXNETS
from descend.models.alexnet import TOP_5_ERROR, AlexNet, AlexNetConfig
from descend.models.typical_cnn import TypicalCNN, TypicalCNNConfig, dense_share, parameters_of
from descend.models.vgg import VGG, VGGConfig
from descend.ops.math.shapes import flatten
from descend.theory.convolution import conv_weights, receptive_field, stacks
from descend.weights.pretrained import Pretrained


def on_meta(kind: type[Pretrained], config: object) -> Any:
    """A network of shapes alone."""
    with torch.device("meta"):
        return kind(config)


def numbers(layer: nn.Module) -> int:
    return sum(p.numel() for p in layer.parameters())


def dense_input(i: Inputs) -> Inputs:
    return {"size": flatten(torch.zeros(1, *i["shape"]), 1).shape[1]}


def first_layer_of_convnetjs(i: Inputs) -> Inputs:
    height, width, channels = i["input"]
    kernel, _, _ = i["size"]
    config = replace(TypicalCNNConfig(), image=(channels, height, width), kernel=kernel)
    first = on_meta(TypicalCNN, config).layers[0]
    out = first(torch.zeros(1, channels, height, width, device="meta"))
    if list(out.shape[1:]) != [i["output"][2], *i["output"][:2]]:
        raise ValueError(f"the first layer gives {tuple(out.shape[1:])}")
    return {
        "params": numbers(first),
        "printed_expression_value": conv_weights(channels, i["filters"], (kernel, kernel)) * i["filters"],
        "padding_needed_for_32": first.padding[0],
    }


def first_layer_of_alexnet(i: Inputs) -> Inputs:
    channels, kernel, _ = i["size"]
    text = AlexNetConfig(kernel=kernel, stride=i["stride"], widths=(i["filters"], *AlexNetConfig().widths[1:]))
    pair = (on_meta(AlexNet, config).c1 for config in (text, ALEXNETS["alexnet-paper"]))
    first, second = (numbers(conv) for conv in pair if conv.in_channels == channels)
    return {"params_64": first, "params_96": second}


def top_5_error(i: Inputs) -> Inputs:
    errors = {"top 5": (TOP_5_ERROR["runner-up"], TOP_5_ERROR["alexnet"])}
    gain = -differences(errors, 0, 1)["top 5"]
    return {"absolute_gain_points": gain, "relative_reduction": gain / TOP_5_ERROR["runner-up"]}


def vgg_16(i: Inputs) -> Inputs:
    *_, classes = i["fc"]
    widths = (*i["channels"], i["channels"][-1])
    model = on_meta(VGG, VGGConfig(tuple(i["input"]), classes, widths=widths, hidden=i["fc"][0]))
    sides: list[int] = []

    def note(_layer: nn.Module, _given: tuple[Tensor, ...], out: Tensor) -> None:
        sides.append(out.shape[-1])

    learnable = 0
    for layer in model.modules():
        learnable += isinstance(layer, nn.Conv2d | nn.Linear)
        if isinstance(layer, nn.MaxPool2d):
            layer.register_forward_hook(note)
    model(torch.zeros(1, *i["input"], device="meta"))
    return {
        "learnable_layers": learnable,
        "map_sizes_after_pools": sides,
        "conv_params": parameters_of(model, nn.Conv2d),
        "fc_params": parameters_of(model, nn.Linear),
        "total_params": numbers(model),
        "fc_fraction": dense_share(model),
    }


def blocks(layers: list[int | str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The list of the paper's table, "M" for a pool: convolutions and width of each block."""
    convs, widths, count = [], [], 0
    for before, layer in zip([0, *layers], layers, strict=False):
        count += layer != "M"
        if layer == "M":
            convs.append(count)
            widths.append(int(before))
            count = 0
    return tuple(convs), tuple(widths)


def vgg_19(i: Inputs) -> Inputs:
    convs_16, widths = blocks(i["vgg16"])
    convs_19, _ = blocks(i["vgg19"])
    at_the_end = (*convs_16[:-1], convs_16[-1] + sum(convs_19) - sum(convs_16))
    true, misread = (on_meta(VGG, VGGConfig(convs=convs, widths=widths)) for convs in (convs_19, at_the_end))
    return {
        "vgg19_total": numbers(true),
        "vgg16_plus_3_at_end": numbers(misread),
        "conv_layers": [sum(convs_16), sum(convs_19)],
    }


def small_kernels(i: Inputs) -> Inputs:
    two, five, three, seven = stacks([(3, 2), (5, 1), (3, 3), (7, 1)], i["C"], 1)
    return {
        "receptive_field_two_3x3": receptive_field((k,) for k in i["kernels"]).size,
        "receptive_field_5x5": five.receptive_field,
        "params_two_3x3": two.weights,
        "params_5x5": five.weights,
        "ratio": two.weights / five.weights,
        "three_3x3_vs_7x7": [three.receptive_field, three.weights / seven.weights],
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-FC-flatten": dense_input,
    "DLN-ConvNetJS-conv": first_layer_of_convnetjs,
    "DLN-AlexNet-conv1": first_layer_of_alexnet,
    "S940-3.3-alexnet-top5": top_5_error,
    "DLN-VGG16-layers": vgg_16,
    "DLN-VGG19-layout": vgg_19,
    "S940-3.3-vgg-3x3-stack": small_kernels,
}

SET_ASIDE: dict[str, str] = {
    "DLN-ILSVRC-results": "published results on ImageNet and its sizes; there is nothing to compute without its images",
}
