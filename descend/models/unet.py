"""U-Net: a contracting path, an expanding path, and at every level a skip that hands detail across.

    down   s_l = convs(h_l),  h_{l+1} = max-pool 2×2 of s_l                    l = 0 .. L−1, width C 2ˡ
    bottom h = convs(h_L)                                                      width C 2ᴸ
    up     h ← convs([s_l ; up(h)])                                            l = L−1 .. 0; [ ; ] joins channels
    logits = 1×1 convolution of h                                              one channel for each class

convs is twice (3×3 convolution, ReLU), with batch norm before the ReLU if `norm` says so, which the paper has not and
which learns much faster; up is a 2×2 transposed convolution of stride 2 that halves the channels, so that
joining doubles them again. The skips CONCATENATE, they do not add: a residual connection adds. A U-Net is not an
autoencoder: its output depends on the input through every skip, so the bottom alone does not decode (DLN); compare
`conv_encoder_decoder`, whose two halves can be taken apart.

`padding` is that of the 3×3 convolutions. 0 is the paper's: each one takes a pixel off every edge, 572×572 becomes
388×388, and s_l is cut in its middle to fit. 1 keeps the size, of any image: an odd edge is pooled alone, and up(h) is
cut back. DLN's figure is missing; sizes are the paper's: C = 64, L = 4, one grey channel, two classes. With as many
outputs as channels it maps image to image, the generator of pix2pix. DLD's index of the skips, (l − l), is garbled.

Systems: unet
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from descend.nn.init import he, normal_
from descend.ranges import Depth, Fraction, Range, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

Norm = Callable[[int], nn.Module]
"""Makes the norm of this many channels."""
NormName = Literal["none", "batch"]
NORMS: dict[NormName, Norm] = {"none": nn.Identity, "batch": nn.BatchNorm2d}


@dataclass(frozen=True)
class UNetConfig:
    """The defaults are the paper's; a recipe takes channels and classes from its data."""

    channels: Width = 1
    """Of the image."""
    classes: Width = 2
    width: Width = 64
    """Channels of the first level, C; each level below has twice as many."""
    depth: Depth = 4
    """Levels that are pooled, L."""
    padding: Annotated[int, Range(int, least=0, most=1)] = 0
    """Of the 3×3 convolutions: 0 shrinks the map, 1 keeps its size."""
    norm: NormName = "none"
    """After each 3×3 convolution: none, as in the paper, or batch."""
    dropout: Fraction = 0.0
    """Dropout rate at the bottom; the paper uses dropout without giving a rate."""

    def __post_init__(self) -> None:
        if self.padding not in (0, 1):
            raise ValueError(f"padding {self.padding}: a 3×3 convolution takes 0 (valid) or 1 (same)")
        if self.depth < 1 or self.width < 1:
            raise ValueError(f"depth {self.depth}, width {self.width}: both are at least 1")
        if self.norm not in NORMS:
            raise ValueError(f"norm {self.norm!r}: choose {', '.join(NORMS)}")

    def size(self, side: int) -> int:
        """Side of the output for an image of this side."""
        if self.padding:
            return side
        sides = []
        for _ in range(self.depth):
            sides.append(side - 4)
            side = -(-(side - 4) // 2)
        side -= 4
        for skip in reversed(sides):
            side = min(2 * side, skip) - 4
        if side < 1:
            raise ValueError(f"the image is too small for {self.depth} levels without padding; give padding 1")
        return side


class Convs(nn.Sequential):
    """Twice a 3×3 convolution, its norm and a ReLU: (b, c, h, w) -> (b, out, h', w')"""

    def __init__(self, channels: int, out: int, padding: int, norm: Norm):
        layers: list[nn.Module] = []
        for n in (channels, out):
            layers += [nn.Conv2d(n, out, 3, padding=padding), norm(out), nn.ReLU(inplace=True)]
        super().__init__(*layers)


class Up(nn.Module):
    """convs([s ; up(h)]): the map h of the level below, the skip s, their channels joined."""

    def __init__(self, channels: int, padding: int, norm: Norm):
        super().__init__()
        half = channels // 2
        self.up = nn.ConvTranspose2d(channels, half, 2, stride=2)
        self.convs = Convs(2 * half, half, padding, norm)

    def forward(self, h: Tensor, s: Tensor) -> Tensor:
        h = self.up(h)
        height, width = min(h.shape[2], s.shape[2]), min(h.shape[3], s.shape[3])
        return self.convs(torch.cat([middle(s, height, width), h[:, :, :height, :width]], dim=1))


def middle(s: Tensor, height: int, width: int) -> Tensor:
    """The middle of a map, of this size."""
    top, left = (s.shape[2] - height) // 2, (s.shape[3] - width) // 2
    return s[:, :, top : top + height, left : left + width]


class UNet(Pretrained):
    """images (b, channels, h, w) -> logits (b, classes, h', w'); the size stays with padding 1"""

    Config = UNetConfig

    def __init__(self, config: UNetConfig):
        super().__init__()
        c = self.config = config
        widths, norm = [c.width * 2**level for level in range(c.depth + 1)], NORMS[c.norm]
        self.down = nn.ModuleList(
            Convs(n, out, c.padding, norm) for n, out in zip([c.channels, *widths], widths, strict=False)
        )
        self.pool = nn.MaxPool2d(2, ceil_mode=True)
        self.dropout = nn.Dropout2d(c.dropout)
        self.ups = nn.ModuleList(Up(n, c.padding, norm) for n in reversed(widths[1:]))
        self.head = nn.Conv2d(c.width, c.classes, 1)
        self.apply(start)

    def contract(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The bottom (b, C 2ᴸ, h, w), and the skips from the finest to the coarsest."""
        skips: list[Tensor] = []
        for convs in self.down[:-1]:
            skips.append(convs(x))
            x = self.pool(skips[-1])
        return self.dropout(self.down[-1](x)), skips

    def expand(self, h: Tensor, skips: list[Tensor]) -> Tensor:
        """The last maps (b, C, h', w') from the bottom and the skips."""
        for up, s in zip(self.ups, reversed(skips), strict=True):
            h = up(h, s)
        return h

    def maps(self, x: Tensor) -> Tensor:
        """What the head reads: (b, C, h', w')."""
        return self.expand(*self.contract(x))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.maps(x))


def start(layer: nn.Module) -> None:
    """He's weights, which keep the scale through many ReLU layers, as the paper asks; biases 0."""
    if isinstance(layer, nn.Conv2d):
        normal_(layer.weight, he)
    if isinstance(layer, nn.ConvTranspose2d):
        nn.init.normal_(layer.weight, std=layer.in_channels**-0.5)  # each output pixel sees each input channel once
    if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d) and layer.bias is not None:
        nn.init.zeros_(layer.bias)


SIZES = {"unet": UNetConfig()}
PARAMETERS = {"unet": 31_030_658}
TINY = UNetConfig(channels=2, classes=3, width=4, depth=2, padding=1, norm="batch")


def TINY_INPUT() -> Tensor:
    """Two images with odd sides."""
    return torch.randn(2, TINY.channels, 11, 14, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("UNet")
