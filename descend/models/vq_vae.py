"""VQ-VAE: an autoencoder whose code is a grid of whole numbers, entries of a learned codebook.

    z_e = encoder(x) (b, h', w', d)     token = argmin_v ‖z_e − e_v‖²     x̂ = decoder(e_token)
    gradient: straight through, ∂/∂z_e = ∂/∂z_q        loss: `descend.losses.quantization`

The tokens, row by row, are a text: a transformer can learn which ones follow which, and so make new images (`dalle`;
with a caption of one start token it is the autoregressive prior of the VQ-VAE). Encoder and decoder: strided
convolutions, then residual blocks x + conv1×1(relu(conv3×3(relu(x)))). The book gives no loss and no sizes; they are
the original paper's, which has K = 512 entries and β = 0.25.

Systems: vq-vae
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from descend.nn.vector_quantizer import Quantized, VectorQuantizer
from descend.ranges import Depth, Few, Length, Width
from descend.weights.layout import Layout, config_to_json, make_part
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class VQVAEConfig:
    """A recipe takes `image` from its data."""

    image: tuple[Width, ...] = (3, 32, 32)
    maps: Width = 64
    halvings: Depth = 2
    """The grid has side / 2^halvings tokens along an edge."""
    blocks: Few = 1
    """Residual blocks of the encoder, and of the decoder."""
    vocab: Length = 512
    """Entries of the codebook."""
    code: Width = 16
    """Numbers in an entry."""

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of tokens."""
        _, height, width = self.image
        by = 2**self.halvings
        if height % by or width % by:
            raise ValueError(f"images of {height}×{width} cannot be halved {self.halvings} times; use fewer halvings")
        return height // by, width // by

    @classmethod
    def read(cls, values: dict[str, Any]) -> Self:
        """From a config.json of which this is a part."""
        names = set(cls.__dataclass_fields__)
        found = make_part(cls, {k: v for k, v in values.items() if k in names}, "codes")
        return cls(**{**found.__dict__, "image": tuple(found.image)})

    def write(self) -> dict[str, Any]:
        """The same the other way."""
        return config_to_json(self, LAYOUT, "vq_vae", "float32")


class ResidualUnit(nn.Module):
    """x + conv1×1(relu(conv3×3(relu(x))))"""

    def __init__(self, maps: int):
        super().__init__()
        self.wide, self.out = nn.Conv2d(maps, maps, 3, padding=1), nn.Conv2d(maps, maps, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.out(self.wide(x.relu()).relu())


def make_encoder(c: VQVAEConfig, outputs: int) -> nn.Sequential:
    """images (b, c, h, w) -> (b, outputs, h', w')"""
    m, channels = c.maps, c.image[0]
    halve = [part for i in range(c.halvings) for part in (nn.Conv2d(m if i else channels, m, 4, 2, 1), nn.ReLU())]
    units = [ResidualUnit(m) for _ in range(c.blocks)]
    return nn.Sequential(*halve, nn.Conv2d(m, m, 3, padding=1), *units, nn.ReLU(), nn.Conv2d(m, outputs, 1))


def make_decoder(c: VQVAEConfig) -> nn.Sequential:
    """(b, d, h', w') -> images (b, c, h, w)"""
    m, channels = c.maps, c.image[0]
    double = [
        part
        for i in reversed(range(c.halvings))
        for part in (nn.ConvTranspose2d(m, m if i else channels, 4, 2, 1), *([nn.ReLU()] if i else []))
    ]
    units = [ResidualUnit(m) for _ in range(c.blocks)]
    return nn.Sequential(nn.Conv2d(c.code, m, 3, padding=1), *units, nn.ReLU(), *double)


class VQVAE(Pretrained):
    """images (b, c, h, w) -> reconstruction (b, c, h, w), codes and their entries (b, h', w', d)"""

    Config = VQVAEConfig

    def __init__(self, config: VQVAEConfig):
        super().__init__()
        c = self.config = config
        assert c.grid
        self.encoder = make_encoder(c, c.code)
        self.quantizer = VectorQuantizer(c.vocab, c.code)
        self.decoder = make_decoder(c)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        code = self.encode(x)
        found = self.quantize(code)
        return self.decode(found.straight), code, found.entry

    def encode(self, x: Tensor) -> Tensor:
        """z_e (b, h', w', d)"""
        return self.encoder(x).movedim(1, -1)

    def quantize(self, code: Tensor) -> Quantized:
        """The nearest entries of codes (.., d)."""
        found: Quantized = self.quantizer(code)
        return found

    def decode(self, code: Tensor) -> Tensor:
        """Codes (b, h', w', d) -> images"""
        return self.decoder(code.movedim(-1, 1))

    def tokens(self, x: Tensor) -> Tensor:
        """Images -> tokens (b, h', w')"""
        return self.quantizer.tokens(self.encode(x))

    def from_tokens(self, tokens: Tensor) -> Tensor:
        """Tokens (b, h', w') -> images"""
        return self.decode(self.quantizer.decode(tokens))

    def reconstruct(self, x: Tensor) -> Tensor:
        """Through tokens and back."""
        return self.from_tokens(self.tokens(x))


SIZES: dict[str, VQVAEConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = VQVAEConfig(image=(3, 8, 8), maps=6, halvings=1, blocks=1, vocab=5, code=4)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, *TINY.image, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("VQVAE")
