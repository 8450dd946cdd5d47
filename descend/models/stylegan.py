"""StyleGAN: the image grows out of a learned constant; noise decides only the style of each layer, and fine detail.

    w = f(z)                                  mapping network of eight dense layers
    h = a learned 4×4 map; then for each side 4, 8, .., s, twice:
        h ← AdaIN(leaky_relu(conv(h) + B n), A w)            n: noise for every pixel; up to the next side before
    x = 1×1 convolution of h to colours       (at 4×4 the first of the two has no convolution: the constant is there)

Each layer has its own affine map A, so styles can be MIXED: layers before the cut take w₁, the others w₂. Coarse layers
set pose and shape, fine ones colour and texture; what lies before the cut does not change at all. Truncation draws w
towards the mean style.

The books only name it; the paper (Karras et al. 2019) grows progressively and blurs when it enlarges; here all layers
train from the start and enlarging is bilinear. So it has 26,211,507 parameters at 1024×1024: the released 26,219,627
without the 1×1 layers of the coarser stages (7,608) and a bias of the constant (512). Noise and second styles come with
the batch. The discriminator is that of the progressive GAN, fully grown.

Systems: stylegan
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, leaky_relu

from descend.contracts import Chance, Wish
from descend.models.progressive_gan import START, GrowingDiscriminator, ProgressiveGANConfig
from descend.nn.adversarial.equalised import EqualConv2d
from descend.nn.adversarial.style import AdaIN, MappingNetwork, PixelNoise
from descend.ranges import Depth, NonNegative, Share, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

STYLES = 1024  # whose mean is w̄


@dataclass(frozen=True)
class StyleGANConfig:
    """The defaults are the paper's; a recipe takes channels and side from its data."""

    latent: Width = 512
    style: Width = 512
    """Numbers of w."""
    mapping: Depth = 8
    """Layers of the mapping network."""
    channels: Width = 3
    side: Side = 1024
    width: Width = 512
    """Most channels of a layer."""
    total: Width = 8192
    """Stage k has total / 2^(k + 1) channels, and no more than `width`."""
    mixing: Share = 0.9
    """Share of the training images that have two styles."""
    truncation: NonNegative = 1.0
    """ψ, when images are sampled; 1: none."""

    def __post_init__(self) -> None:
        _ = self.stages  # a side that cannot be reached is refused

    @property
    def stages(self) -> ProgressiveGANConfig:
        """Sides and widths, as those of the progressive GAN."""
        return ProgressiveGANConfig(self.latent, self.channels, self.side, self.width, self.total)

    @property
    def sides(self) -> list[int]:
        """Side of the map in each layer."""
        return [START * 2**k for k in range(self.stages.stages) for _ in range(2)]

    @property
    def layers(self) -> int:
        return len(self.sides)

    @property
    def noise(self) -> int:
        """Noise of an image: one number for each pixel of each layer."""
        return sum(side**2 for side in self.sides)


class StyledLayer(nn.Module):
    """h (b, c, s, s), noise (b, s s), w (b, d) -> (b, out, s, s)"""

    def __init__(self, conv: nn.Module, out: int, style: int):
        super().__init__()
        self.conv, self.noise, self.norm = conv, PixelNoise(out), AdaIN(out, style)

    def forward(self, h: Tensor, noise: Tensor, w: Tensor) -> Tensor:
        return self.norm(leaky_relu(self.noise(self.conv(h), noise), 0.2), w)


class StyleGAN(Pretrained):
    """z (b, latent), noise (b, n), and other z with the layers at which they take over -> images (b, c, s, s)"""

    Config = StyleGANConfig
    offers: frozenset[str] = frozenset()

    def __init__(self, config: StyleGANConfig):
        super().__init__()
        c, widths = config, config.stages.widths
        self.config = config
        self.mapping = MappingNetwork(c.latent, c.style, c.mapping)
        self.constant = nn.Parameter(torch.randn(widths[0], START, START))
        n = widths[0]
        convs: list[tuple[nn.Module, int]] = [(nn.Identity(), n), (EqualConv2d(n, n, 3, 1), n)]
        for a, b in pairwise(widths):
            convs += [(EqualConv2d(a, b, 3, 1), b), (EqualConv2d(b, b, 3, 1), b)]
        self.layers = nn.ModuleList(StyledLayer(conv, out, c.style) for conv, out in convs)
        self.colours = EqualConv2d(widths[-1], c.channels, 1, 0, gain=1.0)

    def forward(self, z: Tensor, noise: Tensor, other: Tensor | None = None, cut: Tensor | None = None) -> Tensor:
        """`cut` (b): the first layer that takes the style of `other`; at `layers` and beyond none does."""
        w = self.mapping(z)
        styles = w[:, None].expand(-1, self.config.layers, -1)
        if other is not None and cut is not None:
            later = torch.arange(self.config.layers, device=z.device) >= cut[:, None]
            styles = torch.where(later[..., None], self.mapping(other)[:, None], styles)
        return self.synthesise(styles, noise)

    def synthesise(self, styles: Tensor, noise: Tensor) -> Tensor:
        """Images of styles (b, layers, d) and noise (b, n)."""
        return self.colours(self.run_layers(styles, noise)[-1])

    def run_layers(self, styles: Tensor, noise: Tensor) -> list[Tensor]:
        """What each layer gives."""
        h = self.constant.expand(len(styles), -1, -1, -1)
        found = []
        pieces = noise.split([side**2 for side in self.config.sides], dim=1)
        for i, (layer, side, piece) in enumerate(zip(self.layers, self.config.sides, pieces, strict=True)):
            if side != h.shape[-1]:
                h = interpolate(h, size=side, mode="bilinear")
            h = layer(h, piece, styles[:, i])
            found.append(h)
        return found

    def mean_style(self) -> Tensor:
        """w̄ (d), of noise that is always the same."""
        z = torch.randn(STYLES, self.config.latent, generator=torch.Generator().manual_seed(0))
        return self.mapping(z.to(self.constant)).mean(dim=0)

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """New images."""
        w = self.mapping(chance.normal(self.config.latent))
        if self.config.truncation != 1:
            w = torch.lerp(self.mean_style(), w, self.config.truncation)
        return self.synthesise(w[:, None].expand(-1, self.config.layers, -1), chance.normal(self.config.noise))


INPUTS = ("z", "noise", "other", "cut")
"""What the generator reads of a batch."""
GIVEN: tuple[str, ...] = ()
"""What both players are told."""


def draw_inputs(config: StyleGANConfig, random: torch.Generator, n: int) -> dict[str, Tensor]:
    """Noise of styles and pixels; and for a share of the images a second style, from a random layer on."""
    z, other = torch.randn(2, n, config.latent, generator=random)
    noise = torch.randn(n, config.noise, generator=random)
    cut = torch.randint(1, config.layers, (n,), generator=random)
    mixed = torch.rand(n, generator=random) < config.mixing
    return {"z": z, "noise": noise, "other": other, "cut": torch.where(mixed, cut, config.layers)}


def make_discriminator(config: StyleGANConfig) -> nn.Module:
    """The other player: the progressive GAN's, fully grown from the start."""
    return GrowingDiscriminator(config.stages)


SIZES = {"1024": StyleGANConfig()}
PARAMETERS = {"1024": 26_211_507}
TINY = StyleGANConfig(latent=3, style=4, mapping=2, channels=2, side=8, width=4, total=16)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Noise of the styles and of the pixels of two images."""
    random = torch.Generator().manual_seed(0)
    return torch.randn(2, TINY.latent, generator=random), torch.randn(2, TINY.noise, generator=random)


LAYOUT = Layout("StyleGAN")
