"""Worked examples of the toy walkthrough of a YOLO; those of the DETR are in `detr.py`, both losses in `labs`."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs
from descend.nn.detection.heads import GridHead
from descend.ops.detection.anchors import make_grid


def head_channels(boxes: int, classes: int) -> int:
    """Of the head on a map of 512 channels."""
    with torch.device("meta"):
        return GridHead(512, boxes, classes).out_channels


def channels(i: Inputs) -> Inputs:
    return {"channels": head_channels(i["B"], i["K"]), "channels_for_80_classes": head_channels(i["B"], 80)}


def channels_255(i: Inputs) -> Inputs:
    return {"channels": head_channels(i["B"], i["K"])}


def centre(i: Inputs) -> Inputs:
    row, column = i["cell"]
    return {"center": make_grid(13, 13, i["s"]).view(13, 13, 2)[row, column].long()}


EXAMPLES: dict[str, Compute] = {
    "MF-28.1.1-channels": channels,
    "MF-28.1.2-255": channels_255,
    "MF-28.1.4-gt-center": centre,
}

SET_ASIDE: dict[str, str] = {}
