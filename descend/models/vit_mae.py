"""The masked autoencoder (MAE): a Vision Transformer that sees a quarter of the patches, and a small one that paints.

    keep      the ⌊(1 − r) N⌋ patches with the lowest of N random numbers, r = 0.75           in that order
    encoder   [z_cls; E x_i + e_i of the kept] -> pre-norm blocks -> norm                     sees no other patch
    decoder   W h, a learned token for every hidden patch, + d_i -> blocks -> norm -> pixels of every patch
    L = (1/n) Σ over the n hidden patches of ‖x̂_i − x_i‖² / P² C                              visible ones cost nothing

Positions e, d are fixed sines and cosines of row and column: half of the numbers for the column, half for the row, as
the released models have them. With `normalized` the target is each patch with its mean taken off and divided by its
standard deviation. Pixels of a patch are ordered row, column, channel here, as in the released decoder.

The random numbers are an input (`forward(x, noise)`), since randomness is data. `classifier` gives the encoder as a ViT
with a new head: what --start.path of an image recipe begins with. Beside JEPA: pixels predicted, not representations.

Systems: jepa
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from descend.models.vit import FIELDS as VIT_FIELDS
from descend.models.vit import ViTBlock, ViTConfig, ViTForImageClassification, block_keys, fine_tuned, initial
from descend.nn.encoder import Encoder
from descend.nn.image_tokens import ImageTokens
from descend.ranges import Between, Depth, Fraction, Share, Side, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename, rename_pair


@dataclass(frozen=True)
class ViTMAEConfig:
    """The configuration of an MAE; the defaults are those of Base with patches of 16."""

    channels: Width = 3
    side: Side = 224
    """Of the square images, in pixels."""
    patch: Side = 16
    width: Width = 768
    depth: Depth = 12
    heads: Width = 12
    hidden: Width = 3072
    dropout: Fraction = 0.0
    eps: Share = 1e-12
    decoder_width: Width = 512
    decoder_depth: Depth = 8
    decoder_heads: Width = 16
    decoder_hidden: Width = 2048
    hide: Between = 0.75
    """Share of the patches that are hidden."""
    normalized: bool = False
    """Whether the target is each patch standardized by itself."""

    @property
    def vit(self) -> ViTConfig:
        """The encoder's own."""
        sizes = (self.channels, self.side, self.patch, self.width, self.depth, self.heads, self.hidden)
        return ViTConfig(*sizes, self.dropout, self.eps)


class MaskedOutput(NamedTuple):
    """tokens (b, 1 + K, d) of what was kept; pixels (b, N, P² C) of all patches; hidden (b, N), true where not seen."""

    tokens: Tensor
    pixels: Tensor
    hidden: Tensor


def sine_positions(grid: tuple[int, int], width: int) -> Tensor:
    """(1, 1 + N, width): 0 for the class token, then sines and cosines of the column and of the row."""
    if width % 4:
        raise ValueError(f"width {width}: fixed positions of two dimensions need a multiple of 4")
    omega = 10_000.0 ** -(torch.arange(width // 4, dtype=torch.float64) / (width // 4))
    row, column = torch.meshgrid(*(torch.arange(n, dtype=torch.float64) for n in grid), indexing="ij")
    angles = [place.flatten()[:, None] * omega for place in (column, row)]
    parts = [f(angle) for angle in angles for f in (torch.sin, torch.cos)]
    found = torch.cat([torch.zeros(1, width, dtype=torch.float64), torch.cat(parts, dim=1)])
    return found[None].float()


def keep_order(noise: Tensor, hide: float) -> tuple[Tensor, Tensor]:
    """Random numbers (b, N) -> the kept patches (b, K) in rising order of their numbers, and who is hidden (b, N)."""
    count = int(noise.shape[1] * (1 - hide))
    kept = noise.argsort(dim=1)[:, :count]
    return kept, torch.ones_like(noise, dtype=torch.bool).scatter_(1, kept, False)


def by_pixel(x: Tensor, patch: int) -> Tensor:
    """Images (b, c, H, W) -> patches (b, N, P² c), each ordered row, column, channel."""
    b, c, height, width = x.shape
    cut = x.reshape(b, c, height // patch, patch, width // patch, patch)
    return cut.permute(0, 2, 4, 3, 5, 1).reshape(b, -1, patch * patch * c)


class PaintingDecoder(nn.Module):
    """Kept vectors (b, 1 + K, inputs) and their places (b, K) -> pixels (b, N, outputs)"""

    positions: Tensor

    def __init__(self, grid: tuple[int, int], inputs: int, sizes: tuple[int, int, int, int], outputs: int, eps: float):
        super().__init__()
        width, depth, heads, hidden = sizes
        self.enter, self.leave = nn.Linear(inputs, width), nn.Linear(width, outputs)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.register_buffer("positions", sine_positions(grid, width))
        self.encoder = Encoder(ViTBlock(width, heads, hidden, nn.GELU(), 0.0, eps) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps)

    def forward(self, h: Tensor, kept: Tensor) -> Tensor:
        h = self.enter(h)
        b, n, width = len(h), self.positions.shape[1] - 1, h.shape[2]
        place = kept[:, :, None].expand(-1, -1, width)
        patches = self.token.to(h.dtype).expand(b, n, width).scatter(1, place, h[:, 1:])
        z = self.encoder(torch.cat([h[:, :1], patches], dim=1) + self.positions)
        found: Tensor = self.leave(self.norm(z))
        return found[:, 1:]


class ViTMAE(Pretrained):
    """images (b, c, side, side) and noise (b, N) -> vectors of the class token and of the kept patches (b, 1 + K, d)"""

    Config = ViTMAEConfig

    def __init__(self, config: ViTMAEConfig):
        super().__init__()
        c = self.config = config
        self.embed = ImageTokens(c.channels, c.side, c.patch, c.width, c.dropout)
        del self.embed.positions
        self.embed.register_buffer("positions", sine_positions(self.embed.grid, c.width))
        blocks = (ViTBlock(c.width, c.heads, c.hidden, nn.GELU(), c.dropout, c.eps) for _ in range(c.depth))
        self.encoder = Encoder(blocks)
        self.norm = nn.LayerNorm(c.width, c.eps)
        self.apply(initial)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.embed.grid

    def encode(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors (b, 1 + K, d), the kept patches (b, K), and who is hidden (b, N)."""
        tokens = self.embed(x)
        kept, hidden = keep_order(noise, self.config.hide)
        seen = tokens[:, 1:].gather(1, kept[:, :, None].expand(-1, -1, tokens.shape[2]))
        found: Tensor = self.norm(self.encoder(torch.cat([tokens[:, :1], seen], dim=1)))
        return found, kept, hidden

    def features(self, x: Tensor) -> Tensor:
        """The mean of the patches' vectors, of the whole image (b, d)."""
        found: Tensor = self.norm(self.encoder(self.embed(x)))
        return found[:, 1:].mean(dim=1)

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        return self.encode(x, noise)[0]

    def classifier(self) -> ViTForImageClassification:
        """The encoder as a ViT with a new head."""
        source = ViTForImageClassification(self.config.vit)
        shared = {k: v for k, v in self.state_dict().items() if k.partition(".")[0] in ("embed", "encoder", "norm")}
        source.load_state_dict({**source.state_dict(), **shared})
        return fine_tuned(source, self.config.side, Labels())


class ViTMAEForPreTraining(ViTMAE):
    """images (b, c, side, side) and noise (b, N) -> `MaskedOutput`"""

    def __init__(self, config: ViTMAEConfig):
        super().__init__(config)
        c = config
        sizes = (c.decoder_width, c.decoder_depth, c.decoder_heads, c.decoder_hidden)
        self.decoder = PaintingDecoder(self.grid, c.width, sizes, c.patch**2 * c.channels, c.eps)
        self.decoder.apply(initial)

    def paint(self, x: Tensor, noise: Tensor) -> MaskedOutput:
        """What was seen, what is painted, and where."""
        tokens, kept, hidden = self.encode(x, noise)
        return MaskedOutput(tokens, self.decoder(tokens, kept), hidden)

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        return self.paint(x, noise).pixels

    def errors(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """The mean squared error of every patch (b, N), and who is hidden (b, N)."""
        found = self.paint(x, noise)
        target = by_pixel(x, self.config.patch)
        if self.config.normalized:
            mean, var = target.mean(-1, keepdim=True), target.var(-1, keepdim=True)
            target = (target - mean) / (var + 1e-6).sqrt()
        return (found.pixels - target).square().mean(-1), found.hidden


SIZES = {"vit-mae-base": ViTMAEConfig()}
PARAMETERS = {"vit-mae-base": 111_655_680}  # and 252,160 fixed positions
TINY = ViTMAEConfig(
    side=12, patch=4, width=32, depth=2, heads=4, hidden=48, decoder_width=16, decoder_depth=1, decoder_heads=2,
    decoder_hidden=24, hide=0.5,
)  # fmt: skip


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Two images and their random numbers."""
    random = torch.Generator().manual_seed(0)
    return torch.randn(2, 3, 12, 12, generator=random), torch.rand(2, 9, generator=random)


ARCHITECTURES: dict[str, type[Pretrained]] = {"ViTMAEForPreTraining": ViTMAEForPreTraining, "ViTMAEModel": ViTMAE}


def unpack_sides(values: dict[str, Any]) -> dict[str, Any]:
    """Sides given as [224, 224] become 224."""
    values = dict(values)
    for name in ("image_size", "patch_size"):
        given = values.get(name)
        if isinstance(given, list) and len(set(given)) == 1:
            values[name] = given[0]
    return values


FIELDS: dict[str, str | tuple[str, ...]] = {
    **{name: theirs for name, theirs in VIT_FIELDS.items() if name != "labels"},
    "decoder_width": "decoder_hidden_size",
    "decoder_depth": "decoder_num_hidden_layers",
    "decoder_heads": "decoder_num_attention_heads",
    "decoder_hidden": "decoder_intermediate_size",
    "hide": "mask_ratio",
    "normalized": "norm_pix_loss",
}
LAYOUT = Layout(
    architecture="ViTMAEForPreTraining",
    fields=FIELDS,
    fixed={"hidden_act": "gelu", "qkv_bias": True},
    older=unpack_sides,
    bare_prefix="vit.",
)
KEYS = [
    *rename_pair("embed.patches", "vit.embeddings.patch_embeddings.projection"),
    rename("embed.cls", "vit.embeddings.cls_token"),
    rename("embed.positions", "vit.embeddings.position_embeddings"),
    *block_keys("encoder.blocks.{}", "vit.encoder.layer.{}"),
    *rename_pair("norm", "vit.layernorm"),
    *rename_pair("decoder.enter", "decoder.decoder_embed"),
    rename("decoder.token", "decoder.mask_token"),
    rename("decoder.positions", "decoder.decoder_pos_embed"),
    *block_keys("decoder.encoder.blocks.{}", "decoder.decoder_encoder.layer.{}"),
    *rename_pair("decoder.norm", "decoder.decoder_norm"),
    *rename_pair("decoder.leave", "decoder.decoder_pred"),
]
