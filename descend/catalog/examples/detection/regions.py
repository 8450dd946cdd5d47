"""Worked examples of feature pyramids and of the heads for one object."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs
from descend.models.resnet import SIZES, ResNet
from descend.models.task_heads import TaskHeads, TaskHeadsConfig
from descend.nn.detection.fpn import FeaturePyramid, NoLevels, SmoothedPyramid


def bottom_up(i: Inputs) -> Inputs:
    """The sizes of ResNet-50's stages."""
    with torch.device("meta"):
        maps = ResNet(SIZES["resnet-50"]).pyramid(torch.empty(1, 3, i["input"], i["input"]))
    assert [i["input"] // m.shape[2] for m in maps] == i["strides"]
    return {"sizes": [m.shape[2] for m in maps]}


def top_down(i: Inputs) -> Inputs:
    """Shapes (h, w, channels) of the pyramid on ResNet-50, and what its convolutions hold."""
    with torch.device("meta"):
        maps = ResNet(SIZES["resnet-50"]).pyramid(torch.empty(1, 3, 224, 224))
        assert [m.shape[1] for m in maps] == i["C_channels"]
        pyramid = FeaturePyramid(i["C_channels"], i["d"])
        smooth = SmoothedPyramid(i["C_channels"], i["d"], NoLevels()).smooth
        levels = pyramid(maps)
    shapes = {f"M{k}": [*m.shape[2:], m.shape[1]] for k, m in enumerate(levels, 2)}
    counts = {"lateral_params_with_bias": pyramid, "output_3x3_params_with_bias_not_in_text": smooth}
    return shapes | {name: sum(p.numel() for p in part.parameters()) for name, part in counts.items()}


def outputs(i: Inputs) -> Inputs:
    """What the three heads give for one image."""
    with torch.device("meta"):
        model = TaskHeads(TaskHeadsConfig((3, i["H"], i["W"]), i["classes"], i["N"], (8, 8, 8)))
        found = model(torch.empty(1, 3, i["H"], i["W"]))
    assert found.box.numel() == i["box"]
    return {
        "classification": found.logits.numel(),
        "classification_and_localization": found.logits.numel() + found.box.numel(),
        "segmentation_logits_example": found.pixels.numel(),
    }


EXAMPLES: dict[str, Compute] = {
    "MF-22.3.1-bottomup": bottom_up,
    "MF-22.3.2-topdown": top_down,
    "DLD-8.1-localization-outputs": outputs,
}
SET_ASIDE: dict[str, str] = {}
