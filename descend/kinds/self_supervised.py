"""Recipes of joint embeddings: two views of every image through the same network.

siamese    pulled together, mined negatives pushed apart          simclr    found among all views of the step
moco       found among keys of earlier steps                      pirl      pieces find the image in a memory
byol       predicts what a slow copy makes of the other           simsiam   predicts the other, which stands still
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

from descend.data.images.augment import Augment
from descend.data.images.labelled import Images, Preprocessing, Splits
from descend.data.images.views import LoadViews
from descend.data.streams.shards import process
from descend.errors import Mistake
from descend.kinds.representation import LearnImages
from descend.models.contrastive_encoder import (
    ContrastiveEncoder,
    ContrastiveEncoderConfig,
    JigsawEncoder,
    PredictiveEncoder,
    SimSiamEncoder,
)
from descend.ops.mining import Miner, mine_all, mine_hardest, mine_semi_hard, mine_top
from descend.ranges import Count, Fraction, Positive, Range, Share, Width
from descend.tasks.joint_embedding import PIRL, MoCo, Siamese, SimCLR
from descend.tasks.representation import Representation
from descend.tasks.self_prediction import BYOL, SimSiam
from descend.weights.pretrained import Pretrained

Cosines = Annotated[float, Range(float, least=-1, most=1)]


@dataclass(frozen=True)
class EmbedViews(LearnImages):
    """Two views of every image. A subclass says what is asked of them."""

    model: ContrastiveEncoderConfig = field(default_factory=ContrastiveEncoderConfig)
    Model: ClassVar[type[ContrastiveEncoder]] = ContrastiveEncoder

    def make(self, splits: Splits, prepare: Preprocessing) -> tuple[Representation, Pretrained]:
        share = self.loop.batch // (self.loop.accumulate * process()[1])
        if self.loop.batch > 0 and share < 2:
            raise Mistake(f"--batch {self.loop.batch}: batch norms need at least 2 images in every part of a step")
        model = self.Model(replace(self.model, image=prepare.image))
        return self.assemble(model, len(splits.train.y)), model

    def load(self, images: Images, prepare: Preprocessing, augment: Augment) -> LoadViews:
        return LoadViews(images.x, augment, prepare)

    def load_fixed(self, images: Images, prepare: Preprocessing) -> LoadViews:
        return LoadViews(images.x, self.views.augment(), prepare)

    def assemble(self, model: Any, images: int) -> Representation:
        """The task of a method, given how many training images there are."""
        raise NotImplementedError


@dataclass(frozen=True)
class EmbedSimCLR(EmbedViews):
    """SimCLR: each view finds the other one of its image among all views of the step."""

    tau: Positive = 0.5
    """Temperature of the comparison."""

    def assemble(self, model: Any, images: int) -> Representation:
        return SimCLR(model, self.tau)


@dataclass(frozen=True)
class EmbedSiamese(EmbedViews):
    """A Siamese network: two views together, other images apart by a margin."""

    mining: Literal["all", "hardest", "semi-hard", "top-k"] = "all"
    """Which negatives count: all, the most similar, the most similar beyond the positive, or the k most similar."""
    k: Count = 5
    """Negatives of an image with --mining top-k."""
    apart: Cosines = 0.0
    """Cosine below which negatives are far enough apart."""

    def assemble(self, model: Any, images: int) -> Representation:
        miners: dict[str, Miner] = {
            "all": mine_all,
            "hardest": mine_hardest,
            "semi-hard": mine_semi_hard(1.0),
            "top-k": mine_top(self.k),
        }
        return Siamese(model, miners[self.mining], self.apart)


@dataclass(frozen=True)
class EmbedMoCo(EmbedViews):
    """MoCo: each view finds the key of the other one among keys of earlier steps."""

    tau: Positive = 0.1
    """Temperature of the comparison."""
    momentum: Fraction = 0.99
    """Share of the key encoder's old weights that stays after a step."""
    queue: Width = 2048
    """Keys to compare with."""

    def assemble(self, model: Any, images: int) -> Representation:
        return MoCo(model, self.queue, self.model.outputs, self.momentum, self.tau)


@dataclass(frozen=True)
class EmbedBYOL(EmbedViews):
    """BYOL: each view predicts what a slow copy of the network makes of the other one."""

    momentum: Fraction = 0.99
    """Share of the slow copy's old weights that stays after the first step; it rises to 1."""
    Model: ClassVar[type[ContrastiveEncoder]] = PredictiveEncoder

    def assemble(self, model: Any, images: int) -> Representation:
        return BYOL(model, self.momentum, self.loop.steps)


@dataclass(frozen=True)
class EmbedSimSiam(EmbedViews):
    """SimSiam: each view predicts the other one, which takes no gradient."""

    Model: ClassVar[type[ContrastiveEncoder]] = SimSiamEncoder

    def assemble(self, model: Any, images: int) -> Representation:
        return SimSiam(model)


@dataclass(frozen=True)
class EmbedPIRL(EmbedViews):
    """PIRL: an image and its shuffled pieces find the image's place in a memory of all images."""

    tau: Positive = 0.2
    """Temperature of the comparison."""
    momentum: Fraction = 0.5
    """Share of a memory that stays when its image comes."""
    negatives: Width = 256
    """Other memories that an image is compared with."""
    share: Share = 0.5
    """Weight of the pieces' loss; the rest is the image's."""
    Model: ClassVar[type[ContrastiveEncoder]] = JigsawEncoder

    @property
    def grid(self) -> int:
        """Pieces along an edge."""
        side = round(self.model.pieces**0.5)
        if side**2 != self.model.pieces:
            raise Mistake(f"--model.pieces {self.model.pieces}: a jigsaw has a square number of pieces, e.g. {side**2}")
        return side

    def load(self, images: Images, prepare: Preprocessing, augment: Augment) -> LoadViews:
        return LoadViews(images.x, augment, prepare, self.grid, self.negatives)

    def assemble(self, model: Any, images: int) -> Representation:
        return PIRL(model, images, self.model.outputs, self.momentum, self.tau, self.share)
