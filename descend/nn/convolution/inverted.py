"""The blocks of EfficientNets: widen, filter each map on its own, weigh the maps by what they all show, narrow.

    h = SiLU(BN(conv1×1 x))                     e times as many maps; left out where e = 1
    h = SiLU(BN(depthwise k×k h))               its stride is the block's
    h = h · σ(W2 SiLU(W1 mean(h) + b1) + b2)    squeeze and excite: a number for each map, from all maps
    y = BN(conv1×1 h), and + x where shapes agree

The squeeze has a quarter of the block's input maps.

Systems: efficientdet
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

EPSILON = 1e-3
"""Of the batch norms of EfficientNets."""


def norm(width: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(width, eps=EPSILON)


class SqueezeExcite(nn.Module):
    """x · σ(W2 SiLU(W1 mean(x) + b1) + b2): (b, width, h, w), a factor for each map"""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.squeeze = nn.Conv2d(width, hidden, 1)
        self.excite = nn.Conv2d(hidden, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=(2, 3), keepdim=True)
        return x * self.excite(F.silu(self.squeeze(mean))).sigmoid()


class InvertedBlock(nn.Module):
    """(b, inputs, h, w) -> (b, outputs, h / stride, w / stride)"""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expand: int):
        super().__init__()
        hidden = inputs * expand
        self.widen = nn.Conv2d(inputs, hidden, 1, bias=False) if expand > 1 else nn.Identity()
        self.norm_1 = norm(hidden) if expand > 1 else nn.Identity()
        self.filter = nn.Conv2d(hidden, hidden, kernel, stride, kernel // 2, groups=hidden, bias=False)
        self.norm_2 = norm(hidden)
        self.weigh = SqueezeExcite(hidden, max(1, inputs // 4))
        self.narrow = nn.Conv2d(hidden, outputs, 1, bias=False)
        self.norm_3 = norm(outputs)
        self.expand, self.adds = expand, inputs == outputs and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        h = F.silu(self.norm_1(self.widen(x))) if self.expand > 1 else x
        h = self.weigh(F.silu(self.norm_2(self.filter(h))))
        y: Tensor = self.norm_3(self.narrow(h))
        return x + y if self.adds else y
