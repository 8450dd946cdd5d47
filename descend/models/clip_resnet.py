"""CLIP with a residual network as its image encoder, as five of the original's eight had it.

    I = W_I f(x) / ‖·‖        f: the residual network for small images (`resnet_cifar`), W_I its last layer
    T and logits as in `clip`

A network of convolutions learns shapes from far fewer images than a vision transformer of the same cost, whatever
their place and colour; a small CLIP that is trained from scratch is better off with it. transformers has no such model:
its files are in descend's own layout. The one that transformers opens is `clip`.

Systems: clip
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

from torch import Tensor
from torch.nn.functional import normalize

from descend.models.clip import TINY_INPUT as CLIP_INPUT
from descend.models.clip import Joint
from descend.models.clip_text_model import TINY as TINY_TEXT
from descend.models.clip_text_model import ClipTextConfig, text_keys
from descend.models.resnet_cifar import ResNetCifar, ResNetCifarConfig
from descend.ranges import Finite, Range, Side, Width
from descend.weights.layout import Layout
from descend.weights.rules import rename, subtree


@dataclass(frozen=True)
class ClipResNetConfig:
    """The text encoder, the residual network and the space they share."""

    text: ClipTextConfig = field(default_factory=ClipTextConfig)
    channels: Width = 3
    side: Side = 32
    """Of the images."""
    layers: Annotated[int, Range(int, least=8, most=6002)] = 20
    """Of the residual network, 6n + 2."""
    maps: Width = 16
    """Of its first stage; the others have twice and four times as many."""
    width: Width = 64
    """Of the joint space."""
    scale: Finite = 2.6592
    """s at the start."""

    def resize(self, side: int) -> ClipResNetConfig:
        """For images of this side."""
        return replace(self, side=side)


class ClipResNet(Joint):
    """images (n, c, side, side), texts (m, t) -> logits (n, m)"""

    Config = ClipResNetConfig

    def __init__(self, config: ClipResNetConfig):
        super().__init__(config.text, config.width, config.scale)
        c = self.config = config
        self.image = ResNetCifar(ResNetCifarConfig((c.channels, c.side, c.side), c.width, c.layers, c.maps))

    def encode_image(self, x: Tensor) -> Tensor:
        return normalize(self.image(x), dim=-1)


TINY = ClipResNetConfig(TINY_TEXT, side=8, layers=8, maps=4, width=16)
TINY_INPUT = CLIP_INPUT

LAYOUT = Layout(
    architecture="ClipResNet",
    fields={"text": "text_config", **{name: name for name in ("channels", "side", "layers", "maps", "width", "scale")}},
    parts={"text": ClipTextConfig},
    library="descend",
)
KEYS = [
    *text_keys("text."),
    subtree("image"),
    rename("project_text.weight", "text_projection.weight"),
    rename("scale", "logit_scale"),
]
