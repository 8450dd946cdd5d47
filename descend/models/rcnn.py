"""R-CNN: regions that Selective Search proposes, each warped to one size and seen by a network in a pass of its own.

    regions = search(image)        crop_r = image inside region r, warped to k s × k s pixels
    z_r, t_r = head(backbone(crop_r))        one pass for each region: nothing is shared between overlapping ones
    objects = NMS of the regions moved by t_r, by class

The original has linear SVMs over the features; here softmax over K + 1 classes stands in their place, as from Fast
R-CNN on (DLN does not say). A warp reads the crop bilinearly. Regions may be given instead of
searched (`forward(x, regions)`), since the search costs more than the rest. Trained by `losses/detection/regions.py`.
Its parameters are those of `fast_rcnn`: what differs is what is computed how often.

Systems: r-cnn
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.models._regions import GivenRegions, RegionConfig, SearchedDetector
from descend.ops.detection.roi import roi_align
from descend.weights.labels import Labels
from descend.weights.layout import Layout


@dataclass(frozen=True)
class RCNNConfig(RegionConfig):
    """A recipe takes channels and labels from its data."""


class RCNN(SearchedDetector):
    """images (b, channels, h, w) -> regions, and what says more of them"""

    Config = RCNNConfig

    def forward(self, x: Tensor, regions: Tensor | None = None) -> GivenRegions:
        """`regions` (b, p, 4) are searched where they are not given; those without area pad."""
        return self.find(x, regions, lambda boxes, owner: self.head(self.backbone.maps(self.warp(x, boxes, owner))))

    def warp(self, x: Tensor, boxes: Tensor, owner: Tensor) -> Tensor:
        """The crops of boxes (r, 4) of images owner (r), all of one size (r, channels, side, side)."""
        return roi_align(x, boxes, owner, self.config.grid * self.reduction, 1.0, samples=1)


TINY = RCNNConfig(stem=6, widths=(8, 12), depths=(1, 1), hidden=16, grid=3, labels=Labels(("a", "b", "c")))


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.rand(2, 3, 32, 48, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("RCNN", parts={"labels": Labels})
