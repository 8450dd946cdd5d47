"""BEiT: BERT for images. Some patches are hidden, and the encoder says which visual tokens they were.

    H⁽⁰⁾ = [z_cls; z̃_1 .. z̃_N]                              z̃_i = z_mask where a patch is hidden, else E x_i
    Y = H + λ_1 ⊙ attention(norm(H)),  H' = Y + λ_2 ⊙ mlp(norm(Y))      pre-norm, with layer scale λ
    S = Q Kᵀ / √d_k + B                                      relative positions, of each layer or shared by all
    logits_i = W norm(H⁽ᴸ⁾)_i + b                            over v visual tokens, at hidden patches only
    classes: W norm(mean_i H⁽ᴸ⁾_i) + b                       mean over the patches, without the class token

About 40% of the patches are hidden, in blocks (`ops.images.block_mask`). Visual tokens are what a tokenizer makes of
each patch. The paper has the 8,192 codes of a discrete VAE; `descend.nn.codebook` is a substitute that is learned in a
second, the nearest of v typical patches. Keys have no bias: it would add the same number to all scores of a query.
MF names BEiT without a formula; all of this is the paper's and of its released checkpoints.

A pre-trained model shares one table B between its layers; `fine_tuned` gives every layer a copy of its own.

Systems: beit
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from descend.models.vit import IMAGENET, block_keys, initial, unpack_sides
from descend.nn.attention.grid_bias import GridBias
from descend.nn.drop_path import DropPath, path_rates
from descend.nn.encoder import Encoder, PreNormBlock
from descend.nn.image_tokens import POSITION
from descend.nn.patches import PatchEmbedding, grid_of
from descend.ranges import Depth, Finite, Fraction, Length, Share, Side, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import drop, rename, rename_pair


@dataclass(frozen=True)
class BeitConfig:
    """The configuration of a BEiT; the defaults are those of the published format, Base with patches of 16."""

    vocab: Length = 8192
    """Visual tokens."""
    channels: Width = 3
    side: Side = 224
    patch: Side = 16
    width: Width = 768
    depth: Depth = 12
    heads: Width = 12
    hidden: Width = 3072
    dropout: Fraction = 0.0
    drop_path: Fraction = 0.1
    eps: Share = 1e-12
    scale: Finite = 0.1
    """λ at the start."""
    mask_token: bool = False
    """Adds a mask token: needed to pre-train."""
    absolute: bool = False
    """Adds absolute position embeddings, as in ViT."""
    own_bias: bool = False
    """A relative position bias table B per layer."""
    shared_bias: bool = False
    """One relative position bias table B for all layers."""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise ValueError(f"layer_scale_init_value {self.scale}: blocks without a layer scale are not supported")


class BeitBlock(PreNormBlock):
    """Y = X + λ_1 ⊙ attention(norm_1(X)),  X' = Y + λ_2 ⊙ mlp(norm_2(Y)); `bias` makes B, or is None."""

    def __init__(
        self,
        sizes: tuple[int, int, int],
        dropout: float = 0.0,
        eps: float = 1e-12,
        scale: float = 0.1,
        path: float = 0.0,
        bias: nn.Module | None = None,
    ):
        width, heads, hidden = sizes
        super().__init__(width, heads, hidden, nn.GELU(), dropout, eps)
        self.attn.k = nn.Linear(width, width, bias=False)
        self.scale_1, self.scale_2 = (nn.Parameter(torch.full((width,), scale)) for _ in range(2))
        self.path, self.bias = DropPath(path), bias

    def forward(self, x: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """`mask` (1, h, t, t) is a bias that all layers share."""
        if self.bias is not None:
            mask = self.bias() if mask is None else self.bias() + mask
        x = x + self.path(self.scale_1 * self.drop(self.attn(self.norm_1(x), mask=mask, causal=causal)))
        return x + self.path(self.scale_2 * self.drop(self.mlp(self.norm_2(x))))


class BeitEncoder(Pretrained):
    """Tokens and blocks: what every BEiT stands on."""

    Config = BeitConfig

    def __init__(self, config: BeitConfig):
        super().__init__()
        c = self.config = config
        self.grid = grid_of(c.side, c.side, c.patch)
        rows, n = self.grid[0], self.grid[0] * self.grid[1]
        self.patches = PatchEmbedding(c.channels, c.width, c.patch)
        self.cls = nn.Parameter(torch.randn(1, 1, c.width) * 0.02)
        self.mask_token = nn.Parameter(torch.randn(1, 1, c.width) * 0.02) if c.mask_token else None
        self.positions = nn.Parameter(torch.randn(1, 1 + n, c.width) * POSITION) if c.absolute else None
        self.bias = GridBias(c.heads, rows) if c.shared_bias else None
        self.drop = nn.Dropout(c.dropout)
        sizes = c.width, c.heads, c.hidden
        self.encoder = Encoder(
            BeitBlock(sizes, c.dropout, c.eps, c.scale, path, GridBias(c.heads, rows) if c.own_bias else None)
            for path in path_rates(c.drop_path, c.depth)
        )

    def embed(self, x: Tensor, hide: Tensor | None = None) -> Tensor:
        """H⁽⁰⁾ (b, 1 + N, d); `hide` (b, N) is true where a patch is replaced by the mask token."""
        if x.shape[-2:] != (self.config.side, self.config.side):
            height, width = x.shape[-2:]
            raise ValueError(f"images of {height} x {width}, but this model takes {self.config.side} a side")
        tokens = self.patches(x)
        if hide is not None:
            if self.mask_token is None:
                raise ValueError("this model has no mask token; build it with mask_token=True to hide patches")
            tokens = torch.where(hide[:, :, None], self.mask_token, tokens)
        tokens = torch.cat([self.cls.expand(len(x), -1, -1), tokens], dim=1)
        if self.positions is not None:
            tokens = tokens + self.positions
        return self.drop(tokens)

    def tokens(self, x: Tensor, hide: Tensor | None = None) -> Tensor:
        """images (b, c, side, side) -> the last block's vectors (b, 1 + N, d), not normalised"""
        h = self.embed(x, hide)
        bias = None if self.bias is None else self.bias()
        for block in self.encoder.blocks:
            h = block(h, bias)
        return h

    def maps(self, x: Tensor) -> Tensor:
        """The patches' vectors where they stand in the image: (b, d, rows, columns)."""
        return self.tokens(x)[:, 1:].transpose(1, 2).unflatten(2, self.grid)


class BeitForMaskedImageModeling(BeitEncoder):
    """images (b, c, side, side) and hide (b, N) -> logits (n, v) of the n hidden patches, row by row"""

    def __init__(self, config: BeitConfig):
        super().__init__(config)
        if self.mask_token is None:
            raise ValueError("masked image modelling needs mask_token=True (use_mask_token in config.json)")
        self.norm = nn.LayerNorm(config.width, config.eps)
        self.codes = nn.Linear(config.width, config.vocab)
        self.apply(initial)

    def forward(self, x: Tensor, hide: Tensor) -> Tensor:
        return self.codes(self.norm(self.tokens(x, hide)[:, 1:][hide]))


class BeitForImageClassification(BeitEncoder):
    """images (b, c, side, side) -> logits (b, classes)"""

    def __init__(self, config: BeitConfig):
        super().__init__(config)
        self.pool_norm = nn.LayerNorm(config.width, config.eps)
        self.head = nn.Linear(config.width, len(config.labels))
        self.apply(initial)

    def features(self, x: Tensor) -> Tensor:
        """norm(mean of the patches' vectors) (b, d)"""
        return self.pool_norm(self.tokens(x)[:, 1:].mean(dim=1))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


def fine_tuned(source: BeitForMaskedImageModeling, labels: Labels) -> BeitForImageClassification:
    """A classifier that starts from a pre-trained encoder; a shared bias becomes every layer's own."""
    c = source.config
    own = c.own_bias or c.shared_bias
    model = BeitForImageClassification(replace(c, mask_token=False, shared_bias=False, own_bias=own, labels=labels))
    state, given = model.state_dict(), source.state_dict()
    taken = {name: given[name] for name in state if name in given}
    if source.bias is not None:
        own_tables = (name for name in state if name.endswith(".bias.table"))
        taken |= {name: given["bias.table"] + given.get(name, 0) for name in own_tables}
    model.load_state_dict({**state, **taken})
    return model


SIZES = {
    "beit-base": BeitConfig(own_bias=True, labels=IMAGENET),
    "beit-large": BeitConfig(width=1024, depth=24, heads=16, hidden=4096, scale=1e-5, own_bias=True, labels=IMAGENET),
}
PARAMETERS = {"beit-base": 86_530_984, "beit-large": 304_430_568}
TINY = BeitConfig(
    vocab=11, side=12, patch=4, width=32, depth=2, heads=4, hidden=48, drop_path=0.0, own_bias=True, absolute=True
)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(0))


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "BeitForMaskedImageModeling": BeitForMaskedImageModeling,
    "BeitForImageClassification": BeitForImageClassification,
}

LAYOUT = Layout(
    architecture="BeitForImageClassification",
    fields={
        "vocab": "vocab_size",
        "channels": "num_channels",
        "side": "image_size",
        "patch": "patch_size",
        "width": "hidden_size",
        "depth": "num_hidden_layers",
        "heads": "num_attention_heads",
        "hidden": "intermediate_size",
        "dropout": ("hidden_dropout_prob", "attention_probs_dropout_prob"),
        "drop_path": "drop_path_rate",
        "eps": "layer_norm_eps",
        "scale": "layer_scale_init_value",
        "mask_token": "use_mask_token",
        "absolute": "use_absolute_position_embeddings",
        "own_bias": "use_relative_position_bias",
        "shared_bias": "use_shared_relative_position_bias",
        "labels": "id2label",
    },
    fixed={"hidden_act": "gelu", "use_mean_pooling": True},
    parts={"labels": Labels},
    older=unpack_sides,
    bare_prefix="beit.",
)

BLOCK, LAYER = "encoder.blocks.{}", "beit.encoder.layer.{}"
BIAS = "relative_position_bias.relative_position_bias_table"
KEYS = [
    *rename_pair("patches", "beit.embeddings.patch_embeddings.projection"),
    rename("cls", "beit.embeddings.cls_token"),
    rename("mask_token", "beit.embeddings.mask_token"),
    rename("positions", "beit.embeddings.position_embeddings"),
    *block_keys(BLOCK, LAYER),
    rename(f"{BLOCK}.scale_1", f"{LAYER}.lambda_1"),
    rename(f"{BLOCK}.scale_2", f"{LAYER}.lambda_2"),
    rename(f"{BLOCK}.bias.table", f"{LAYER}.attention.attention.{BIAS}"),
    rename("bias.table", f"beit.encoder.{BIAS}"),
    drop(f"{LAYER}.attention.attention.relative_position_bias.relative_position_index"),
    drop("beit.encoder.relative_position_bias.relative_position_index"),
    *rename_pair("norm", "layernorm"),
    *rename_pair("codes", "lm_head"),
    *rename_pair("pool_norm", "beit.pooler.layernorm"),
    *rename_pair("head", "classifier"),
]
