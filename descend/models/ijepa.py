"""I-JEPA's encoder: a Vision Transformer without a class token, whose patches know what the others will say.

    H⁽⁰⁾ = [E x_1 .. E x_N] + E_pos,  pre-norm blocks as in `models/vit`,  norm        a vector for every patch
    h = (1/N) Σ_i H⁽ᴸ⁾_i                                                               the image's vector

DLN names joint embedding predictive architectures with the papers: representations are predicted instead of pixels.
While it learns (`tasks/jepa`), `encode_some` sees only the patches of the context, and a predictor
(`nn/patch_predictor`) says what a slow copy of the encoder makes of the hidden blocks. The predictor is not part of the
model folder, as in the released ones. `classifier` gives the encoder with a new head on h.

Systems: jepa
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.models.vit import FIELDS, FIXED, ViTConfig, ViTEncoder, block_keys, initial, unpack_sides
from descend.nn.image_tokens import ImageTokens
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename, rename_pair


@dataclass(frozen=True)
class IJepaConfig(ViTConfig):
    """The configuration of an I-JEPA encoder; the defaults are those of the published format."""


class PatchTokens(ImageTokens):
    """images (b, c, side, side) -> tokens (b, N, d), none before the patches"""

    special = 0

    def __init__(self, channels: int, side: int, patch: int, width: int, dropout: float = 0.0):
        super().__init__(channels, side, patch, width, dropout)
        del self.cls
        nn.init.normal_(self.positions, std=0.02)  # as released: a place is too easily foreseen to be much of a vector

    def leading(self) -> tuple[Tensor, ...]:
        return ()


class IJepaEncoder(ViTEncoder):
    """Tokens, blocks and the last norm."""

    Config = IJepaConfig
    Tokens = PatchTokens

    def encode_some(self, x: Tensor, places: Tensor) -> Tensor:
        """The vectors (b, K, d) of the patches at places (b, K), which see each other and nothing else."""
        tokens = self.embed(x)
        chosen = tokens.gather(1, places[:, :, None].expand(-1, -1, tokens.shape[2]))
        found: Tensor = self.norm(self.encoder(chosen))
        return found

    def features(self, x: Tensor) -> Tensor:
        """The mean of the patches' vectors (b, d)."""
        return self.tokens(x).mean(dim=1)

    def layer_features(self, x: Tensor) -> Tensor:
        """Mean and maximum over the patches after every block, end to end (b, 2 depth d): what a probe reads.

        The paper's probes read the means of the last four blocks, too.
        """
        h, found = self.embed(x), []
        for block in self.encoder.blocks:
            h = block(h)
            found += [h.mean(dim=1), h.amax(dim=1)]
        return torch.cat(found, dim=1)


class IJepa(IJepaEncoder):
    """images (b, c, side, side) -> vectors of the patches (b, N, d)"""

    def __init__(self, config: IJepaConfig):
        super().__init__(config)
        self.apply(initial)

    def forward(self, x: Tensor) -> Tensor:
        return self.tokens(x)

    def classifier(self) -> IJepaForImageClassification:
        """The encoder with a new head."""
        model = IJepaForImageClassification(self.config)
        model.load_state_dict({**model.state_dict(), **self.state_dict()})
        return model


class IJepaForImageClassification(IJepaEncoder):
    """images (b, c, side, side) -> logits (b, classes)"""

    def __init__(self, config: IJepaConfig):
        super().__init__(config)
        self.head = nn.Linear(config.width, len(config.labels))
        self.apply(initial)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


SIZES = {"ijepa-vit-huge": IJepaConfig(patch=14, width=1280, depth=32, heads=16, hidden=5120, eps=1e-6)}
PARAMETERS = {"ijepa-vit-huge": 630_764_802}  # 2,562 of them in the head for two classes
TINY = IJepaConfig(side=12, patch=4, width=32, depth=2, heads=4, hidden=48)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(0))


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "IJepaModel": IJepa,
    "IJepaForImageClassification": IJepaForImageClassification,
}
LAYOUT = Layout(
    architecture="IJepaForImageClassification",
    fields=FIELDS,
    fixed=FIXED,
    parts={"labels": Labels},
    older=unpack_sides,
    bare_prefix="ijepa.",
)
KEYS = [
    *rename_pair("embed.patches", "ijepa.embeddings.patch_embeddings.projection"),
    rename("embed.positions", "ijepa.embeddings.position_embeddings"),
    *block_keys("encoder.blocks.{}", "ijepa.encoder.layer.{}"),
    *rename_pair("norm", "ijepa.layernorm"),
    *rename_pair("head", "classifier"),
]
