"""Fully convolutional network (FCN-32s, 16s, 8s): a classifier's layers slid over the whole image, and scaled up.

    p_l = max-pool 2×2 of (3×3 convolution, ReLU) n_l times of p_{l−1}        l = 1..5, p_5 at 1/32 of the image
    h = relu(fc7 * relu(fc6 * p_5))                                           fc6 is a 7×7 convolution, fc7 is 1×1
    s = score * h                                                             1×1, one channel for each class
    32s   logits = up₃₂(s)
    16s   logits = up₁₆(up₂(s) + score₄ * p_4)                                fusion by SUM
    8s    logits = up₈(up₂(up₂(s) + score₄ * p_4) + score₃ * p_3)

The backbone of the paper is VGG-16, its three dense layers read as convolutions (`from_vgg`). Erratum: DLN calls all
of them 1×1; fc6 sees 512 × 7 × 7 values, so it is 7×7 (102,764,544 parameters, a 1×1 has 2,101,248). up_f is a
transposed convolution of stride f and kernel 2f that starts as bilinear interpolation; the ones by 2 are learnt, the
last is kept. The scores of 21 channels are 20 classes of PASCAL VOC and the background.

`stride` (32, 16, 8, ..) is how coarse the last map is; a finer one adds one more fusion, down to the first pool. Any
image size: a pool at an odd edge takes what is there, and up is cut back. Left out: the paper pads the image by 100
pixels to let fc6 fit and cuts the rest off; here fc6 has a padding of 3.

Systems: fcn
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.models.unet import NORMS, Norm, NormName
from descend.models.vgg import VGG
from descend.nn.init import he, normal_
from descend.ranges import Depth, Fraction, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class FCNConfig:
    """The defaults are the paper's FCN-8s on VGG-16; a recipe takes channels and classes from its data."""

    channels: Width = 3
    classes: Width = 21
    widths: tuple[Width, ...] = (64, 128, 256, 512, 512)
    """Channels of each stage of the backbone; every stage ends in a pool."""
    convs: tuple[Depth, ...] = (2, 2, 3, 3, 3)
    """Convolutions of each stage."""
    hidden: Width = 4096
    """Channels of fc6 and fc7."""
    kernel: Side = 7
    """Side of fc6's kernel."""
    stride: Side = 8
    """Pixels of the image in one pixel of the map that is scaled up last: 32, 16 or 8."""
    dropout: Fraction = 0.5
    """After fc6 and fc7."""
    norm: NormName = "none"
    """After each 3×3 convolution: none, as in the paper, or batch, to learn from scratch."""

    def __post_init__(self) -> None:
        for name in ("widths", "convs"):  # a list when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.widths) != len(self.convs) or not self.widths:
            raise ValueError(f"{len(self.widths)} widths for {len(self.convs)} stages; give one each")
        if self.stride not in self.strides:
            told = ", ".join(map(str, reversed(self.strides)))
            raise ValueError(f"stride {self.stride}: the backbone's maps have {told}")
        if self.kernel % 2 == 0:
            raise ValueError(f"kernel {self.kernel}: fc6 needs an odd side")
        if self.norm not in NORMS:
            raise ValueError(f"norm {self.norm!r}: choose {', '.join(NORMS)}")

    @property
    def strides(self) -> tuple[int, ...]:
        """Pixels of the image in one pixel of each pool's map."""
        return tuple(2 ** (i + 1) for i in range(len(self.widths)))

    @property
    def fused(self) -> tuple[int, ...]:
        """Numbers of the stages whose pools are scored and added, from the coarsest to the finest."""
        return tuple(i for i in reversed(range(len(self.widths) - 1)) if self.strides[i] >= self.stride)


class Stage(nn.Sequential):
    """(3×3 convolution, its norm, ReLU) n times, then a 2×2 max pool."""

    def __init__(self, channels: int, width: int, n: int, norm: Norm):
        layers: list[nn.Module] = []
        for i in range(n):
            convolution = nn.Conv2d(width if i else channels, width, 3, padding=1)
            layers += [convolution, norm(width), nn.ReLU(inplace=True)]
        super().__init__(*layers, nn.MaxPool2d(2, ceil_mode=True))


def bilinear(factor: int) -> Tensor:
    """The kernel (2f, 2f) whose transposed convolution of stride f interpolates between pixel centres."""
    line = 1 - (torch.arange(2 * factor) - (factor - 0.5)).abs() / factor
    return line[:, None] * line


class Twice(nn.ConvTranspose2d):
    """A learnt up₂ that starts as bilinear interpolation of each channel on its own."""

    def __init__(self, channels: int):
        super().__init__(channels, channels, 4, stride=2, padding=1, bias=False)

    def reset_parameters(self) -> None:
        """Zeros between channels, the bilinear kernel on the diagonal."""
        kernel = bilinear(2).to(self.weight)
        with torch.no_grad():
            self.weight.copy_(torch.eye(self.in_channels).to(self.weight)[:, :, None, None] * kernel)


def upsample(s: Tensor, factor: int) -> Tensor:
    """up_f, bilinear and kept: each channel (b, c, h, w) -> (b, c, f h, f w)."""
    kernel = bilinear(factor).to(s).expand(s.shape[1], 1, -1, -1)
    return F.conv_transpose2d(s, kernel, stride=factor, padding=factor // 2, groups=s.shape[1])


class FCN(Pretrained):
    """images (b, channels, h, w) -> logits (b, classes, h, w)"""

    Config = FCNConfig

    def __init__(self, config: FCNConfig):
        super().__init__()
        c = self.config = config
        self.stages = nn.ModuleList(
            Stage(n, width, convs, NORMS[c.norm])
            for n, width, convs in zip((c.channels, *c.widths), c.widths, c.convs, strict=False)
        )
        self.fc6 = nn.Conv2d(c.widths[-1], c.hidden, c.kernel, padding=c.kernel // 2)
        self.fc7 = nn.Conv2d(c.hidden, c.hidden, 1)
        self.dropout = nn.Dropout2d(c.dropout)
        self.score = nn.Conv2d(c.hidden, c.classes, 1)
        self.scores = nn.ModuleList(nn.Conv2d(c.widths[i], c.classes, 1) for i in c.fused)
        self.twice = nn.ModuleList(Twice(c.classes) for _ in c.fused)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                normal_(layer.weight, he)
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]  # every one has a bias

    def pools(self, x: Tensor) -> list[Tensor]:
        """p_1 .. p_5"""
        found: list[Tensor] = []
        for stage in self.stages:
            x = stage(x)
            found.append(x)
        return found

    def maps(self, x: Tensor) -> Tensor:
        """h (b, hidden, h/32, w/32): what the coarsest scores read."""
        return self.dense(self.pools(x)[-1])

    def dense(self, p: Tensor) -> Tensor:
        """relu(fc7 * relu(fc6 * p))"""
        return self.dropout(self.fc7(self.dropout(self.fc6(p).relu())).relu())

    def forward(self, x: Tensor) -> Tensor:
        pools = self.pools(x)
        s = self.score(self.dense(pools[-1]))
        for i, score, twice in zip(self.config.fused, self.scores, self.twice, strict=True):
            finer = score(pools[i])
            s = twice(s)[:, :, : finer.shape[2], : finer.shape[3]] + finer
        return upsample(s, self.config.stride)[:, :, : x.shape[2], : x.shape[3]]


def from_vgg(vgg: VGG, classes: int = 21, stride: int = 8) -> FCN:
    """An FCN that starts with the weights of a trained VGG; only its score layers are new.

    VGG's f6 sees (c, k, k) values flattened, so its matrix (hidden, c k²) is the kernel (hidden, c, k, k).
    """
    v = vgg.config
    model = FCN(FCNConfig(v.image[0], classes, v.widths, v.convs, v.hidden, v.grid, stride, v.dropout))
    mine = [layer for stage in model.stages for layer in stage.children() if isinstance(layer, nn.Conv2d)]
    theirs: list[nn.Conv2d | nn.Linear] = [layer for layer in vgg.layers if isinstance(layer, nn.Conv2d)]
    with torch.no_grad():
        for to, given in zip([*mine, model.fc6, model.fc7], [*theirs, vgg.f6, vgg.f7], strict=True):
            to.weight.copy_(given.weight.view_as(to.weight))
            to.bias.copy_(given.bias)  # type: ignore[union-attr,arg-type]  # all have one
    return model


SIZES = {f"fcn-{stride}s": FCNConfig(stride=stride) for stride in (32, 16, 8)}
PARAMETERS = {"fcn-32s": 134_346_581, "fcn-16s": 134_364_410, "fcn-8s": 134_376_863}
TINY = FCNConfig(classes=3, widths=(4, 6, 8), convs=(1, 1, 2), hidden=10, kernel=3, stride=2, dropout=0.0, norm="batch")


def TINY_INPUT() -> Tensor:
    """Two images with odd sides."""
    return torch.randn(2, TINY.channels, 19, 22, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("FCN")
