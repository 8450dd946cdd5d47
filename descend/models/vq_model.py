"""The vector-quantised autoencoder of latent diffusion: the code of an image is a grid of words from a codebook.

    e_k, k = argmin_k |z − e_k|²                       z = W encoder(x), at every place of the grid
    x̂ = decoder(W' e_k)                                gradients pass as if e_k were z (straight-through)
    loss = |sg(z) − e|² + β |z − sg(e)|²               codebook and commitment, means over all numbers

The diffusion model works on z before quantisation; what it makes is quantised on the way to the decoder. β belongs to
the commitment of the encoder. diffusers' files were trained with `legacy=True`, which puts β on the codebook term
instead; with β = 1 both are one. Here the loss is in `commitment`, with β where it belongs.
Opens and writes diffusers' VQModel; VQ-f4 of latent diffusion has 55,322,782 parameters.

Systems: latent-diffusion
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from descend.models._diffusion_layout import attention_keys
from descend.models.autoencoder_kl import FIELDS, read_blocks, write_blocks
from descend.nn.codebook import distances
from descend.nn.diffusion.autoencoder import ImageDecoder, ImageEncoder
from descend.nn.diffusion.levels import check_sides
from descend.ranges import Depth, Length, Positive, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename, subtree


@dataclass(frozen=True)
class VQModelConfig:
    """The defaults are those of the published format."""

    channels: Width = 3
    out: Width = 3
    widths: tuple[Width, ...] = (64,)
    blocks: Depth = 1
    latent: Width = 3
    """Channels of the code before the codebook."""
    groups: Width = 32
    size: Side = 32
    scale: Positive = 0.18215
    words: Length = 256
    """Entries of the codebook."""
    word_width: Width | None = None
    """Numbers in an entry; none: as many as the code has channels."""

    @property
    def factor(self) -> int:
        """By which the sides shrink."""
        return 2 ** (len(self.widths) - 1)

    @property
    def code(self) -> int:
        """Channels of what the diffusion model sees."""
        return self.word_width or self.latent


class Quantised(NamedTuple):
    """words (b, k, h, w), through which gradients pass straight; tokens (b, h, w); the two terms of the loss."""

    words: Tensor
    tokens: Tensor
    codebook: Tensor
    commitment: Tensor


class VQModel(Pretrained):
    """x (b, c, h, w) -> x̂ (b, c, h, w)"""

    Config = VQModelConfig

    def __init__(self, config: VQModelConfig):
        super().__init__()
        c = self.config = config
        width = c.word_width or c.latent
        self.encoder = ImageEncoder(c.channels, c.latent, c.widths, c.blocks, c.groups)
        self.quant_conv = nn.Conv2d(c.latent, width, 1)
        self.codebook = nn.Embedding(c.words, width)
        nn.init.uniform_(self.codebook.weight, -1 / c.words, 1 / c.words)
        self.post_quant_conv = nn.Conv2d(width, c.latent, 1)
        self.decoder = ImageDecoder(c.latent, c.out, c.widths, c.blocks, c.groups)

    def encode(self, x: Tensor) -> Tensor:
        """z before quantisation, without the scale."""
        check_sides(x, len(self.config.widths))
        return self.quant_conv(self.encoder(x))

    def quantise(self, z: Tensor) -> Quantised:
        """The nearest words of the codebook."""
        places = z.permute(0, 2, 3, 1)
        tokens = distances(places.detach(), self.codebook.weight.detach()).argmin(-1)
        words = self.codebook(tokens).permute(0, 3, 1, 2)
        codebook, commitment = (words - z.detach()).square().mean(), (words.detach() - z).square().mean()
        return Quantised(z + (words - z).detach(), tokens, codebook, commitment)

    def decode(self, z: Tensor) -> Tensor:
        """Images of codes, which are quantised first."""
        return self.decode_words(self.quantise(z).words)

    def decode_words(self, words: Tensor) -> Tensor:
        """Images of words of the codebook."""
        return self.decoder(self.post_quant_conv(words))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x̂, and the codebook's term of the loss."""
        found = self.quantise(self.encode(x))
        return self.decode_words(found.words), found.codebook

    def pass_through(self, x: Tensor, noise: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """x̂, and the two terms of the loss; nothing is drawn."""
        found = self.quantise(self.encode(x))
        return self.decode_words(found.words), {"codebook": found.codebook, "commitment": found.commitment}

    @property
    def image(self) -> tuple[int, int, int]:
        """Channels, height and width of the images that it was made for; others fit if they can be halved."""
        return self.config.channels, self.config.size, self.config.size

    def to_latent(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        """s·z: what the diffusion model sees; nothing is drawn."""
        return self.config.scale * self.encode(x)

    def from_latent(self, latent: Tensor) -> Tensor:
        """Images of what the diffusion model made."""
        return self.decode(latent / self.config.scale)


SIZES = {"vq-f4": VQModelConfig(widths=(128, 256, 512), blocks=2, words=8192, size=256)}
PARAMETERS = {"vq-f4": 55_322_782}
TINY = VQModelConfig(channels=1, out=1, widths=(8, 16), latent=2, groups=4, size=8, words=11, word_width=3)


def TINY_INPUT() -> Tensor:
    return torch.randn(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout(
    architecture="VQModel",
    library="diffusers",
    fields={**FIELDS, "words": "num_vq_embeddings", "word_width": "vq_embed_dim"},
    fixed={"act_fn": "silu", "lookup_from_codebook": False, "mid_block_add_attention": True, "norm_type": "group"},
    older=read_blocks,
    newer=write_blocks,
)
KEYS = [
    *attention_keys(),
    rename("codebook.weight", "quantize.embedding.weight"),
    *map(subtree, ("encoder", "decoder", "quant_conv", "post_quant_conv")),
]
