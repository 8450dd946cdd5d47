"""The autoencoder of latent diffusion, first stage: an image as a small Gaussian code, and back.

    [μ ; log σ²] = W encoder(x)             z = μ + σ ε                       −30 ≤ log σ² ≤ 20
    x̂ = decoder(W' z)
    KL(q ‖ N(0, I)) = ½ Σ (μ² + σ² − 1 − log σ²)                              with a tiny weight, 1e-6 as released

It is trained on images alone; the diffusion model then works on s·z. The scale s brings the codes to unit variance,
which the noise schedule takes for granted: s = 1/std of the codes of the training data, measured once (0.18215 in the
released models, "a fill-in" in DLN) and kept in config.json (`scaling_factor`).
512×512×3 becomes 64×64×4, 48 times fewer numbers. Opens and writes diffusers' AutoencoderKL.

Systems: latent-diffusion
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from descend.models._diffusion_layout import attention_keys
from descend.nn.diffusion.autoencoder import ImageDecoder, ImageEncoder
from descend.nn.diffusion.levels import check_sides
from descend.ranges import Depth, Positive, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import subtree

LEAST, MOST = -30.0, 20.0  # of log σ²


@dataclass(frozen=True)
class AutoencoderKLConfig:
    """The defaults are those of the published format."""

    channels: Width = 3
    out: Width = 3
    widths: tuple[Width, ...] = (64,)
    """Channels of each level; the sides are halved between two."""
    blocks: Depth = 1
    """Of each level of the encoder; the decoder has one more."""
    latent: Width = 4
    """Channels of the code, k."""
    groups: Width = 32
    size: Side = 32
    scale: Positive = 0.18215
    """s: codes are multiplied by it before noise is added."""

    def __post_init__(self) -> None:
        if any(width % self.groups for width in self.widths):
            raise ValueError(f"widths {self.widths}: each must be a multiple of {self.groups} groups")

    @property
    def factor(self) -> int:
        """By which the sides shrink."""
        return 2 ** (len(self.widths) - 1)

    @property
    def code(self) -> int:
        """Channels of what the diffusion model sees."""
        return self.latent


class Gaussian(NamedTuple):
    """A code with its uncertainty: mean and log σ², each (b, k, h, w)."""

    mean: Tensor
    logvar: Tensor

    def draw(self, noise: Tensor) -> Tensor:
        """z = μ + σ ε"""
        return self.mean + (0.5 * self.logvar).exp() * noise

    def divergence(self) -> Tensor:
        """KL(q ‖ N(0, I)) of each image, summed over its code: (b,)"""
        return 0.5 * (self.mean.square() + self.logvar.exp() - 1 - self.logvar).flatten(1).sum(1)


class AutoencoderKL(Pretrained):
    """x (b, c, h, w) -> x̂ (b, c, h, w), by the mean code"""

    Config = AutoencoderKLConfig

    def __init__(self, config: AutoencoderKLConfig):
        super().__init__()
        c = self.config = config
        self.encoder = ImageEncoder(c.channels, 2 * c.latent, c.widths, c.blocks, c.groups)
        self.decoder = ImageDecoder(c.latent, c.out, c.widths, c.blocks, c.groups)
        self.quant_conv = nn.Conv2d(2 * c.latent, 2 * c.latent, 1)
        self.post_quant_conv = nn.Conv2d(c.latent, c.latent, 1)

    def encode(self, x: Tensor) -> Gaussian:
        """The code of images, as a distribution, without the scale."""
        check_sides(x, len(self.config.widths))
        mean, logvar = self.quant_conv(self.encoder(x)).chunk(2, dim=1)
        return Gaussian(mean, logvar.clamp(LEAST, MOST))

    def decode(self, z: Tensor) -> Tensor:
        """Images of codes without the scale."""
        return self.decoder(self.post_quant_conv(z))

    def forward(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        """Through the mean code, or through the one that this noise draws."""
        code = self.encode(x)
        return self.decode(code.mean if noise is None else code.draw(noise))

    def pass_through(self, x: Tensor, noise: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """x̂ by the code that this noise draws, and what it costs: the divergence of each image's code, kl (b)."""
        code = self.encode(x)
        return self.decode(code.draw(noise)), {"kl": code.divergence()}

    @property
    def image(self) -> tuple[int, int, int]:
        """Channels, height and width of the images that it was made for; others fit if they can be halved."""
        return self.config.channels, self.config.size, self.config.size

    def to_latent(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        """s·z: what the diffusion model sees."""
        code = self.encode(x)
        return self.config.scale * (code.mean if noise is None else code.draw(noise))

    def from_latent(self, latent: Tensor) -> Tensor:
        """Images of what the diffusion model made."""
        return self.decode(latent / self.config.scale)

    def set_scale(self, latents: Tensor) -> float:
        """s = 1/std of unscaled codes of the data; kept in the config."""
        scale = float(1 / latents.flatten().double().std())
        self.config = replace(self.config, scale=scale)
        return scale

    def take_decoder(self, other: AutoencoderKL) -> None:
        """The decoder of another one of the same sizes: codes stay as they are, images become others."""
        for name in ("decoder", "post_quant_conv"):
            getattr(self, name).load_state_dict(getattr(other, name).state_dict())


SIZES = {
    "stable-diffusion": AutoencoderKLConfig(widths=(128, 256, 512, 512), blocks=2, size=512),
}
PARAMETERS = {"stable-diffusion": 83_653_863}
TINY = AutoencoderKLConfig(channels=1, out=1, widths=(8, 16), latent=2, groups=4, size=8)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    return torch.randn(2, 1, 8, 8, generator=random), torch.randn(2, 2, 4, 4, generator=random)


def write_blocks(values: dict[str, Any]) -> dict[str, Any]:
    """One kind of block at every level, which files name."""
    levels = len(values["block_out_channels"])
    return values | {
        "down_block_types": ["DownEncoderBlock2D"] * levels,
        "up_block_types": ["UpDecoderBlock2D"] * levels,
    }


def read_blocks(values: dict[str, Any]) -> dict[str, Any]:
    """Other blocks are refused."""
    for name in ("down_block_types", "up_block_types"):
        known = write_blocks({"block_out_channels": values.get("block_out_channels", (64,))})[name]
        if list(values.get(name, known)) != known:
            raise ValueError(f"{name} = {values[name]} is not supported, only {known}")
    return values


FIELDS = {
    "channels": "in_channels",
    "out": "out_channels",
    "widths": "block_out_channels",
    "blocks": "layers_per_block",
    "latent": "latent_channels",
    "groups": "norm_num_groups",
    "size": "sample_size",
    "scale": "scaling_factor",
}
LAYOUT = Layout(
    architecture="AutoencoderKL",
    library="diffusers",
    fields={**FIELDS},
    fixed={
        "act_fn": "silu",
        "latents_mean": None,
        "latents_std": None,
        "mid_block_add_attention": True,
        "shift_factor": None,
        "use_post_quant_conv": True,
        "use_quant_conv": True,
    },
    older=read_blocks,
    newer=write_blocks,
)
KEYS = [*attention_keys(), *map(subtree, ("encoder", "decoder", "quant_conv", "post_quant_conv"))]
