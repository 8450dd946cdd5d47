"""Recipes of joint embedding predictive architectures: an encoder foresees what it will say of hidden blocks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from descend.data.images.augment import Augment
from descend.data.images.jepa_blocks import LoadBlocks, TargetBlocks
from descend.data.images.labelled import Images, Preprocessing, Splits
from descend.data.images.views import Viewing
from descend.errors import Mistake
from descend.kinds.representation import LearnImages
from descend.models.ijepa import IJepa, IJepaConfig
from descend.nn.patch_predictor import PatchPredictor
from descend.nn.patches import grid_of
from descend.ranges import Depth, Fraction, Width
from descend.tasks.jepa import JEPA
from descend.tasks.representation import Representation
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class PredictorSizes:
    """The network between the context and the hidden blocks."""

    width: Width = 48
    depth: Depth = 2
    heads: Width = 4


@dataclass(frozen=True)
class PredictBlocks(LearnImages):
    """I-JEPA on images without labels; the slow copy of the encoder is what is kept."""

    model: IJepaConfig = field(default_factory=IJepaConfig)
    views: Viewing = field(default_factory=lambda: Viewing(crop=1.0, colour=0.0, grey=0.0))
    """How an image is changed before it is cut into patches."""
    blocks: TargetBlocks = field(default_factory=TargetBlocks)
    predictor: PredictorSizes = field(default_factory=PredictorSizes)
    momentum: Fraction = 0.99
    """Share of the slow copy's old weights that stays after the first step; it rises to 1."""
    fixed: ClassVar[tuple[str, ...]] = ("context", "targets")

    def make(self, splits: Splits, prepare: Preprocessing) -> tuple[Representation, Pretrained]:
        encoder, p = build_encoder(self.model, prepare.image), self.predictor
        predictor = PatchPredictor(encoder.grid[0] * encoder.grid[1], self.model.width, p.width, p.depth, p.heads)
        task = JEPA(encoder, predictor, self.momentum, self.loop.steps)
        assert isinstance(task.target, IJepa)
        return task, task.target

    def load(self, images: Images, prepare: Preprocessing, augment: Augment) -> LoadBlocks:
        _, height, width = prepare.image
        try:
            grid, b = grid_of(height, width, self.model.patch), self.blocks
        except ValueError as error:
            raise Mistake(f"--model.patch: {error}") from None
        if b.context(grid) < 1 or b.height > grid[0] or b.width > grid[1]:
            patches = f"{b.count} blocks of {b.height}×{b.width} leave no context of {grid[0]}×{grid[1]} patches"
            raise Mistake(f"--blocks: {patches}; take fewer or smaller ones")
        return LoadBlocks(images.x, augment, prepare, b, grid)

    def describe(self, task: Representation) -> dict[str, Any]:
        assert isinstance(task, JEPA)
        grid = task.target.grid
        assert isinstance(grid, tuple)
        return {
            "patches": grid[0] * grid[1],
            "context": self.blocks.context(grid),
            "predictor's parameters": sum(q.numel() for q in task.online.predictor.parameters()),
        }


def build_encoder(config: IJepaConfig, image: tuple[int, int, int]) -> IJepa:
    """The encoder, with the sizes that follow from the data."""
    channels, height, width = image
    if height != width:
        raise Mistake(f"the images are {height}×{width}, but this model needs squares; give --data.size {height}")
    try:
        return IJepa(replace(config, channels=channels, side=height))
    except ValueError as error:
        raise Mistake(f"--model: {error}") from None
