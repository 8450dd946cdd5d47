"""A simple feature pyramid: all levels from the one map of a plain vision transformer.

    stride 4     deconv 2×2/2 (d → d/2), norm, GELU, deconv 2×2/2 (d/2 → d/4)         of a map of stride 16
    stride 8     deconv 2×2/2 (d → d/2)
    stride 16    the map itself
    stride 32    max-pool 2×2/2
    each then    conv 1×1 (→ width), norm, conv 3×3, norm                             norm: over the channels of a pixel

A CNN or a Swin has a hierarchy of maps to begin with; a ViT has one, whose every pixel has seen the whole image. ViTDet
found that coarse and fine copies of it do as well as a hierarchy, without paths from level to level.

Systems: vit-det
"""

from __future__ import annotations

from torch import Tensor, nn


class PixelNorm(nn.LayerNorm):
    """A layer norm over the channels of each pixel: (b, c, h, w) -> (b, c, h, w)"""

    def __init__(self, channels: int, eps: float = 1e-6):
        super().__init__(channels, eps)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class PlainPyramid(nn.Module):
    """A map (b, d, h, w) -> maps (b, width, ..) of 4, 2, 1 and ½ times its sides, fine to coarse"""

    def __init__(self, channels: int, width: int):
        super().__init__()
        if channels % 4:
            raise ValueError(f"{channels} channels: the finest level has a quarter of them; give a multiple of 4")
        half, quarter = channels // 2, channels // 4
        double = nn.ConvTranspose2d(channels, half, 2, 2)
        again = nn.ConvTranspose2d(half, quarter, 2, 2)
        scales = [
            nn.Sequential(double, PixelNorm(half), nn.GELU(), again),
            nn.Sequential(nn.ConvTranspose2d(channels, half, 2, 2)),
            nn.Identity(),
            nn.MaxPool2d(2, 2),
        ]
        inputs = (quarter, half, channels, channels)
        self.levels = nn.ModuleList(
            nn.Sequential(scale, *mix_pixels(n, width)) for scale, n in zip(scales, inputs, strict=True)
        )

    def forward(self, x: Tensor) -> list[Tensor]:
        return [level(x) for level in self.levels]


def mix_pixels(inputs: int, width: int) -> list[nn.Module]:
    """conv 1×1, norm, conv 3×3, norm"""
    return [
        nn.Conv2d(inputs, width, 1, bias=False),
        PixelNorm(width),
        nn.Conv2d(width, width, 3, padding=1, bias=False),
        PixelNorm(width),
    ]
