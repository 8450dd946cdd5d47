"""Worked examples of residual networks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch
from torch import Tensor, nn

from descend.catalog.examples import Compute, Inputs, real
from descend.models.resnet import IMAGENET, SIZES, ResNet, ResNetConfig
from descend.nn.convolution.residual import Residual, projection
from descend.theory.convolution import output_size
from descend.theory.residual_paths import (
    BOTTLENECK_SHARE,
    bottleneck_weights,
    linear_stack,
    mean_path_length,
    paths,
    paths_by_length,
    sum_over_paths,
    two_convolutions_weights,
)


class Constant(nn.Module):
    """A sublayer whose output is given."""

    def __init__(self, value: Tensor):
        super().__init__()
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        return self.value


def parameters(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


# Blocks


def zero_residual(i: Inputs) -> Inputs:
    x = real(i["x"])
    same, wider = projection(64, 64, 1), projection(64, 128, 2)
    return {
        "H": Residual(Constant(torch.zeros_like(x)))(x),
        "extra_parameters": parameters(same),
        "projection_1x1_64_to_128_params": next(p.numel() for p in wider.parameters() if p.dim() == 4),
    }


def jacobian(i: Inputs) -> Inputs:
    f = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Tanh()).double()
    nn.init.zeros_(f[0].weight)  # type: ignore[arg-type]
    return {"J": torch.autograd.functional.jacobian(Residual(f), real(i["x"]))}


def residual_sum(i: Inputs) -> Inputs:
    return {"Xp": Residual(Constant(real(i["O"])))(real(i["X"]))}


def adjustments(i: Inputs) -> Inputs:
    o = real(i["O"])
    x = torch.zeros_like(o)
    moved = Residual(Constant(o))(x) - x
    return {"first_three_of_row_1": moved[0, :3], "row_1": moved[0], "column_1": moved[:, 0]}


def bottleneck_saving(i: Inputs) -> Inputs:
    c = i["C"]
    narrow, full = bottleneck_weights(c), two_convolutions_weights(c)
    return {
        "bottleneck_weights": narrow,
        "two_3x3_weights": full,
        "ratio": narrow / full,
        "closed_form_ratio": BOTTLENECK_SHARE,
    }


# ResNet


@cache
def build(size: str) -> ResNet:
    """A published size without memory for its weights."""
    with torch.device("meta"):
        return ResNet(SIZES[size])


def depths_34_101(i: Inputs) -> Inputs:
    basic, deep = SIZES["resnet-34"], SIZES["resnet-101"]
    found = [replace(basic, depths=tuple(i["blocks_34"])), replace(deep, depths=tuple(i["blocks_101"]))]
    with torch.device("meta"):
        counts = [parameters(ResNet(config)) for config in found]
    return {"layers": [config.layers for config in found], "params_with_projection_shortcuts": counts}


def depth_50(i: Inputs) -> Inputs:
    model = build("resnet-50")
    convs = [m for m in model.modules() if isinstance(m, nn.Conv2d)]
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    weights, affine, head = (sum(map(parameters, found)) for found in (convs, norms, [model.head]))
    macs = multiplications(model, 224)
    return {
        "layers": replace(model.config, depths=tuple(i["blocks"])).layers,
        "params_batchnorm_no_conv_bias": parameters(model),
        "conv_weights_only": weights,
        "bn_affine": affine,
        "fc": head,
        "params_conv_bias_no_bn_eq_22_6": weights + sum(m.out_channels for m in convs) + head,
        "macs_224": macs,
        "flops_224_eq_22_7": 2 * macs,
    }


def multiplications(model: ResNet, side: int) -> int:
    """Multiply-adds of one image, counted by torch on the meta device (it counts both, a convolution and a product)."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        model.eval()(torch.empty(1, model.config.channels, side, side, device="meta"))
    return counter.get_total_flops() // 2


def stage_table(i: Inputs) -> Inputs:
    config = ResNetConfig(widths=tuple(i["expansion"] * m for m in i["mid_channels"]), labels=IMAGENET)
    with torch.device("meta"):
        model, x = ResNet(config), torch.empty(1, 3, i["input"], i["input"])
    maps = [model.stem(x), *model.pyramid(x)]
    return {
        "sizes": [m.shape[-1] for m in maps],
        "channels": [m.shape[1] for m in maps],
        "blocks": [1, *config.depths],
        "fc_out": model.head.out_features,
    }


def conv1(i: Inputs) -> Inputs:
    return {"H_out": output_size(i["H"], i["K"], i["p"], i["s"])}


def max_pool(i: Inputs) -> Inputs:
    found = {"H_out": i["p"], "H_out_with_padding_1": 1}
    return {key: output_size(i["H"], i["K"], p, i["s"]) for key, p in found.items()}


def stage_start(i: Inputs) -> Inputs:
    return {
        "H_out": output_size(i["H"], i["K"], 0, i["s"]),
        "3x3_pad1_gives": output_size(i["H"], 3, 1, i["s"]),
    }


def head(i: Inputs) -> Inputs:
    height, width, channels = i["F5"]
    model = build("resnet-50")
    f = torch.empty(1, channels, height, width, device="meta").mean(dim=(2, 3))
    return {
        "f": list(f.shape[1:]),
        "W_c": list(model.head.weight.shape),
        "logits": list(model.head(f).shape[1:]),
        "head_params": parameters(model.head),
    }


def depths(i: Inputs) -> Inputs:
    found = [ResNetConfig(depths=tuple(blocks)).layers for blocks in i["bottleneck_blocks"].values()]
    return {"depths": found}


# Analysis


def identity_construction(i: Inputs) -> Inputs:
    from descend.labs.degradation import append_identities

    torch.manual_seed(i["seed"])
    shallow = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU())
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        difference = (append_identities(shallow, 4, 3)(x) - shallow(x)).abs().max()
    return {"max_abs_difference": difference}


def residual_paths(i: Inputs) -> Inputs:
    blocks, x = list(real(i["F"])), real(i["x"])
    return {
        "output": linear_stack(blocks, x),
        "sum_over_paths": sum_over_paths(blocks, x),
        "paths": len(list(paths(blocks, x))),
        "paths_by_length": paths_by_length(i["n"]),
        "mean_path_length": mean_path_length(i["n"]),
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-ResNet-zero-residual": zero_residual,
    "VOM-9.9.2-residual-jacobian": jacobian,
    "VOM-9.9.3-residual-sum": residual_sum,
    "VOM-9.9.3-adjustments": adjustments,
    "MF-22.2.2-bottleneck-saving": bottleneck_saving,
    "DLN-ResNet-depths": depths_34_101,
    "MF-22.2-depth": depth_50,
    "MF-22.2.3-table": stage_table,
    "MF-22.2.4-conv1": conv1,
    "MF-22.2.4-maxpool": max_pool,
    "MF-22.2.4-conv3": stage_start,
    "MF-22.2.4-conv4": stage_start,
    "MF-22.2.4-conv5": stage_start,
    "MF-22.2.4-head": head,
    "S940-3.4-resnet-depths": depths,
    "DLN-ResNet-identity-construction": identity_construction,
    "S940-3.4-residual-paths": residual_paths,
}

SET_ASIDE: dict[str, str] = {}
