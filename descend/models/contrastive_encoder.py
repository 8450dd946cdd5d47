"""Joint embeddings: an encoder of images, a projector that the loss looks through, and sometimes a predictor.

    h = f(x)          the representation: a network for small images (`models/resnet_cifar`), without its head
    z = g(h)          what is compared; thrown away afterwards                          (`nn/projection`)
    p = q(z)          what one view says of the other: BYOL and SimSiam only

    ContrastiveEncoder    f, g        Siamese networks, SimCLR, MoCo
    PredictiveEncoder     f, g, q     BYOL
    SimSiamEncoder        f, g, q     SimSiam: g of three layers, q with a narrow middle
    JigsawEncoder         f, g, g'    PIRL: g' reads the vectors of the shuffled pieces of an image

Both views go through the same weights (DLN's Siamese network). `classifier` gives the encoder alone with a new head,
ready to be trained: what --start.path of an image recipe begins with.

Systems: siamese-contrastive, simclr, byol, simsiam, pirl
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn

from descend.models.resnet_cifar import ResNetCifar, ResNetCifarConfig
from descend.nn.projection import PatchProjector, Projector, SimSiamProjector
from descend.ranges import Range, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class ContrastiveEncoderConfig:
    """A recipe takes the image from its data."""

    image: tuple[Side, Side, Side] = (3, 32, 32)
    """Channels, height, width."""
    layers: Annotated[int, Range(int, least=8, most=6002)] = 8
    """6n + 2 layers of the residual network."""
    width: Width = 16
    """Maps of its first stage; h has four times as many numbers."""
    block: str = "residual"
    """As of the residual network: residual, plain, .."""
    stride: Annotated[int, Range(int, least=1, most=8)] = 1
    """Of its first layer."""
    pool: Literal["mean", "max"] = "mean"
    """What h takes of each map."""
    hidden: Width = 128
    """Of the projector."""
    outputs: Width = 64
    """Numbers of z."""
    predictor: Width = 128
    """Hidden units of the predictor, where there is one."""
    pieces: Width = 4
    """Pieces of a jigsaw, a square number, where there is one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "image", tuple(self.image))  # a list when read from config.json

    @property
    def encoder(self) -> ResNetCifarConfig:
        """The residual network's own."""
        return ResNetCifarConfig(
            image=self.image, layers=self.layers, width=self.width, block=self.block, stride=self.stride, pool=self.pool
        )


class ContrastiveEncoder(Pretrained):
    """images (b, channels, h, w) -> z (b, outputs)"""

    Config = ContrastiveEncoderConfig

    def __init__(self, config: ContrastiveEncoderConfig):
        super().__init__()
        c = self.config = config
        encoder: Any = ResNetCifar(c.encoder)
        encoder.head = nn.Identity()
        self.encoder: nn.Module = encoder
        self.projector: nn.Module = Projector(4 * c.width, c.hidden, c.outputs)

    def features(self, x: Tensor) -> Tensor:
        """h (b, 4 width), the representation."""
        found: Tensor = self.encoder(x)
        return found

    def project(self, x: Tensor) -> Tensor:
        """z (b, outputs)"""
        found: Tensor = self.projector(self.features(x))
        return found

    def forward(self, x: Tensor) -> Tensor:
        return self.project(x)

    def classifier(self) -> ResNetCifar:
        """The encoder with a new head."""
        model = ResNetCifar(self.config.encoder)
        taken = {**model.state_dict(), **self.encoder.state_dict()}
        model.load_state_dict(taken)
        return model


class PredictiveEncoder(ContrastiveEncoder):
    """images (b, channels, h, w) -> p (b, outputs)"""

    def __init__(self, config: ContrastiveEncoderConfig):
        super().__init__(config)
        self.predictor: nn.Module = Projector(config.outputs, config.predictor, config.outputs)

    def predict(self, z: Tensor) -> Tensor:
        """p of z"""
        found: Tensor = self.predictor(z)
        return found

    def forward(self, x: Tensor) -> Tensor:
        return self.predict(self.project(x))


class SimSiamEncoder(PredictiveEncoder):
    """images (b, channels, h, w) -> p (b, outputs)"""

    def __init__(self, config: ContrastiveEncoderConfig):
        super().__init__(config)
        self.projector = SimSiamProjector(4 * config.width, config.hidden, config.outputs)


class JigsawEncoder(ContrastiveEncoder):
    """images (b, c, h, w) and pieces (b, k, c, h/√k, w/√k) -> their vectors (b, outputs), twice"""

    def __init__(self, config: ContrastiveEncoderConfig):
        super().__init__(config)
        self.patches = PatchProjector(4 * config.width, config.pieces, config.outputs)

    def project_pieces(self, pieces: Tensor) -> Tensor:
        """g'([h_1; ..; h_k]) (b, outputs) of pieces (b, k, c, ..): each goes through the encoder by itself."""
        h = self.features(pieces.flatten(0, 1)).unflatten(0, pieces.shape[:2])
        found: Tensor = self.patches(h)
        return found


TINY = ContrastiveEncoderConfig(image=(2, 8, 8), width=4, hidden=12, outputs=6, predictor=5)


def TINY_INPUT() -> Tensor:
    """Four images."""
    return torch.randn(4, *TINY.image, generator=torch.Generator().manual_seed(0))


ARCHITECTURES: dict[str, type[Pretrained]] = {  # the first that a model is one of names it
    "SimSiamEncoder": SimSiamEncoder,
    "PredictiveEncoder": PredictiveEncoder,
    "JigsawEncoder": JigsawEncoder,
    "ContrastiveEncoder": ContrastiveEncoder,
}
LAYOUT = Layout("ContrastiveEncoder")
