"""The Vision Transformer: an image as a sequence of patches, read by the encoder of language models.

    H⁽⁰⁾ = [z_cls; E x_1 .. E x_N] + E_pos                                      (`descend.nn.image_tokens`)
    Y = H + attention(norm(H)),   H' = Y + W_2 gelu(W_1 norm(Y) + b_1) + b_2    depth times: pre-norm, no mask
    logits = W_head norm(H⁽ᴸ⁾)_cls + b_head                                     p = softmax(logits), ℓ = −log p_y

The slope of ℓ is p − y in the logits and (p − y) h_clsᵀ in W_head (`descend.losses.classification`). GELU is the exact
one. The norm after the last block is the paper's (MF prints none); its hidden layer in the head while pre-training is
left out, as in the released checkpoints.

Parameters: C P² d + d + d + (N + 1) d + depth (12 d² + 13 d) + 2 d + (d + 1) classes, with hidden = 4 d.
Erratum: MF prints 307M for Large. With patches of 16 it has 304.3M; 306.5M is the count with patches of 32.

`at_side` is the same model for images of another side (positions interpolated in two dimensions), `fine_tuned` one that
starts from it with a new head. `descend.nn.attention.maps.attention_maps(model, x)` gives every layer's attention.

Systems: vit, class-token, vit-pretrain-finetune
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from descend.nn.encoder import Encoder, PreNormBlock
from descend.nn.heads import Pooler
from descend.nn.image_tokens import ImageTokens
from descend.nn.init import lecun, normal_, uniform_, xavier
from descend.ranges import Depth, Fraction, Share, Side, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule, rename, rename_pair


@dataclass(frozen=True)
class ViTConfig:
    """The configuration of a ViT; the defaults are those of Base with patches of 16."""

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
    labels: Labels = field(default_factory=Labels)


class ImageEncoded(NamedTuple):
    """hidden (b, 1 + N, d): a vector a token; pooled (b, d): one for the image."""

    hidden: Tensor
    pooled: Tensor


class ViTBlock(PreNormBlock):
    """A pre-norm block that can leave out what nobody reads."""

    def forward(self, x: Tensor, mask: Tensor | None = None, causal: bool = False, count: int | None = None) -> Tensor:
        """With `count`, only the first this many tokens are computed; they still look at all of them."""
        z = self.norm_1(x)
        x = x[:, :count] + self.drop(self.attn(z[:, :count], z, mask=mask, causal=causal))
        return x + self.drop(self.mlp(self.norm_2(x)))


class ViTEncoder(Pretrained):
    """Tokens, blocks and the last norm: what every ViT stands on."""

    Config = ViTConfig
    Tokens: type[ImageTokens] = ImageTokens

    def __init__(self, config: Any):
        super().__init__()
        c = self.config = config
        self.embed = self.Tokens(c.channels, c.side, c.patch, c.width, c.dropout)
        self.encoder = Encoder(
            ViTBlock(c.width, c.heads, c.hidden, nn.GELU(), c.dropout, c.eps) for _ in range(c.depth)
        )
        self.norm = nn.LayerNorm(c.width, c.eps)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.embed.grid

    def tokens(self, x: Tensor) -> Tensor:
        """images (b, c, side, side) -> vectors (b, special + N, d)"""
        return self.norm(self.encoder(self.embed(x)))

    def special(self, x: Tensor) -> Tensor:
        """The vectors of the tokens before the patches (b, special, d): the only ones that a classifier reads.

        In training the last block computes no others; in evaluation it does, for whoever looks inside.
        """
        h, count = self.embed(x), self.embed.special
        *first, last = self.encoder.blocks
        for block in first:
            h = block(h)
        h = self.norm(last(h, count=count if self.training else None))
        return h[:, :count]

    def features(self, x: Tensor) -> Tensor:
        """The class token's vector (b, d)."""
        return self.special(x)[:, 0]

    def maps(self, x: Tensor) -> Tensor:
        """The patches' vectors where they stand in the image: (b, d, rows, columns)."""
        return self.tokens(x)[:, self.embed.special :].transpose(1, 2).unflatten(2, self.grid)

    def at_side(self, side: int) -> Self:
        """This model for images of another side; only the positions differ."""
        model = type(self)(replace(self.config, side=side))
        model.load_state_dict({**self.state_dict(), "embed.positions": self.embed.positions_at(side).detach()})
        return model.train(self.training)


class ViT(ViTEncoder):
    """images (b, c, side, side) -> vectors (b, 1 + N, d) and the image's vector tanh(W h_cls + b) (b, d)"""

    def __init__(self, config: ViTConfig):
        super().__init__(config)
        self.pooler = Pooler(config.width)
        self.apply(initial)

    def forward(self, x: Tensor) -> ImageEncoded:
        hidden = self.tokens(x)
        return ImageEncoded(hidden, self.pooler(hidden))


class ViTForImageClassification(ViTEncoder):
    """images (b, c, side, side) -> logits (b, classes)"""

    def __init__(self, config: ViTConfig):
        super().__init__(config)
        self.head = nn.Linear(config.width, len(config.labels))
        self.apply(initial)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


def fine_tuned(source: ViTEncoder, side: int, labels: Labels) -> ViTForImageClassification:
    """A classifier of other classes and images of another side that starts from a trained ViT; the head is new."""
    model = ViTForImageClassification(replace(source.config, side=side, labels=labels))
    shared = {k: v for k, v in source.state_dict().items() if k.partition(".")[0] in ("embed", "encoder", "norm")}
    shared["embed.positions"] = source.embed.positions_at(side).detach()
    model.load_state_dict({**shared, **{f"head.{k}": v for k, v in model.head.state_dict().items()}})
    return model


def initial(module: nn.Module) -> None:
    """Xavier for matrices, LeCun for patches, biases 0, as the paper's code draws them: small widths start as fast."""
    if isinstance(module, nn.Linear):
        uniform_(module.weight, xavier)
    if isinstance(module, nn.Conv2d):
        normal_(module.weight, lecun)
    if isinstance(module, nn.Linear | nn.Conv2d) and module.bias is not None:
        nn.init.zeros_(module.bias)


IMAGENET = Labels(tuple(f"LABEL_{k}" for k in range(1000)))
SIZES = {
    "vit-base": ViTConfig(labels=IMAGENET),
    "vit-large": ViTConfig(width=1024, depth=24, heads=16, hidden=4096, labels=IMAGENET),
    "vit-huge": ViTConfig(patch=14, width=1280, depth=32, heads=16, hidden=5120, labels=IMAGENET),
}
PARAMETERS = {"vit-base": 86_567_656, "vit-large": 304_326_632, "vit-huge": 632_045_800}
TINY = ViTConfig(side=12, patch=4, width=32, depth=2, heads=4, hidden=48)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(0))


ARCHITECTURES: dict[str, type[Pretrained]] = {"ViTModel": ViT, "ViTForImageClassification": ViTForImageClassification}


def unpack_sides(values: dict[str, Any]) -> dict[str, Any]:
    """Sides given as [224, 224] become 224; a pooler as wide as the model is the usual one."""
    values = dict(values)
    for name in ("image_size", "patch_size"):
        given = values.get(name)
        if isinstance(given, list) and len(set(given)) == 1:
            values[name] = given[0]
    if values.get("pooler_output_size") == values.get("hidden_size", ViTConfig.width):
        values["pooler_output_size"] = None
    return values


FIELDS: dict[str, str | tuple[str, ...]] = {
    "channels": "num_channels",
    "side": "image_size",
    "patch": "patch_size",
    "width": "hidden_size",
    "depth": "num_hidden_layers",
    "heads": "num_attention_heads",
    "hidden": "intermediate_size",
    "dropout": ("hidden_dropout_prob", "attention_probs_dropout_prob"),
    "eps": "layer_norm_eps",
    "labels": "id2label",
}
FIXED = {"hidden_act": "gelu", "qkv_bias": True, "pooler_act": "tanh", "pooler_output_size": None}
LAYOUT = Layout(
    architecture="ViTForImageClassification",
    fields=FIELDS,
    fixed=FIXED,
    parts={"labels": Labels},
    older=unpack_sides,
    bare_prefix="vit.",
)


def block_keys(block: str, layer: str) -> list[Rule]:
    """A pre-norm block, which all of the family name alike."""
    names = {
        "attn.q": "attention.attention.query",
        "attn.k": "attention.attention.key",
        "attn.v": "attention.attention.value",
        "attn.out": "attention.output.dense",
        "norm_1": "layernorm_before",
        "norm_2": "layernorm_after",
        "mlp.up": "intermediate.dense",
        "mlp.down": "output.dense",
    }
    return [rule for a, b in names.items() for rule in rename_pair(f"{block}.{a}", f"{layer}.{b}")]


def encoder_keys(prefix: str) -> list[Rule]:
    """Tokens, blocks and last norm, which DeiT names alike."""
    return [
        *rename_pair("embed.patches", f"{prefix}.embeddings.patch_embeddings.projection"),
        rename("embed.cls", f"{prefix}.embeddings.cls_token"),
        rename("embed.positions", f"{prefix}.embeddings.position_embeddings"),
        *block_keys("encoder.blocks.{}", f"{prefix}.encoder.layer.{{}}"),
        *rename_pair("norm", f"{prefix}.layernorm"),
        *rename_pair("pooler.dense", f"{prefix}.pooler.dense"),
    ]


KEYS = [*encoder_keys("vit"), *rename_pair("head", "classifier")]
