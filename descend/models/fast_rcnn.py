"""Fast R-CNN: the convolutional features of the whole image once, then a small head for each region.

    M = backbone(image)            regions = search(image)
    z_r, t_r = head(RoI pooling of M inside region r)        K + 1 classes, 4 offsets for each
    objects = NMS of the regions moved by t_r, by class

What R-CNN computes anew for each of 2000 overlapping crops is computed once. RoI pooling (the maximum over a fixed
grid, `ops/detection/roi.py`) passes gradients to the shared maps, so that all is trained at once. Regions may be given
instead of searched (`forward(x, regions)`). Trained by `losses/detection/regions.py`.

Systems: fast-r-cnn
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.models._regions import GivenRegions, RegionConfig, SearchedDetector
from descend.nn.detection.roi import PooledRegions
from descend.weights.labels import Labels
from descend.weights.layout import Layout


@dataclass(frozen=True)
class FastRCNNConfig(RegionConfig):
    """A recipe takes channels and labels from its data."""


class FastRCNN(SearchedDetector):
    """images (b, channels, h, w) -> regions, and what says more of them"""

    Config = FastRCNNConfig

    def __init__(self, config: FastRCNNConfig):
        super().__init__(config)
        self.regions = PooledRegions(config.grid, self.reduction)

    def forward(self, x: Tensor, regions: Tensor | None = None) -> GivenRegions:
        """`regions` (b, p, 4) are searched where they are not given; those without area pad."""
        maps = self.backbone.maps(x)
        return self.find(x, regions, lambda boxes, owner: self.head(self.regions(maps, boxes, owner)))


TINY = FastRCNNConfig(stem=6, widths=(8, 12), depths=(1, 1), hidden=16, grid=3, labels=Labels(("a", "b", "c")))


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.rand(2, 3, 32, 48, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("FastRCNN", parts={"labels": Labels})
