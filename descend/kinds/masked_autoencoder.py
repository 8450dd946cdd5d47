"""Recipes of masked autoencoders: a Vision Transformer learns images by painting what it did not see."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from descend.data.images.augment import Augment
from descend.data.images.digits import Digits
from descend.data.images.labelled import Images, Preprocessing, Splits
from descend.data.images.noise_order import LoadNoise
from descend.data.images.views import Viewing
from descend.errors import Mistake
from descend.kinds.representation import LearnImages
from descend.models.vit_mae import ViTMAEConfig, ViTMAEForPreTraining
from descend.nn.patches import grid_of
from descend.tasks.masked_autoencoder import PaintHidden
from descend.tasks.representation import Representation
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class PaintPatches(LearnImages):
    """An MAE on images without labels; --start.path of a ViT recipe then begins with it."""

    model: ViTMAEConfig = field(default_factory=ViTMAEConfig)
    data: Any = field(default_factory=Digits)
    views: Viewing = field(default_factory=lambda: Viewing(crop=1.0, flip=0.0, colour=0.0, grey=0.0))
    """How an image is changed before it is cut into patches."""
    fixed: ClassVar[tuple[str, ...]] = ("noise",)

    def make(self, splits: Splits, prepare: Preprocessing) -> tuple[Representation, Pretrained]:
        channels, height, width = prepare.image
        if height != width:
            raise Mistake(f"the images are {height}×{width}, but this model needs squares; give --data.size {height}")
        try:
            model = ViTMAEForPreTraining(replace(self.model, channels=channels, side=height))
        except ValueError as error:
            raise Mistake(f"--model: {error}") from None
        return PaintHidden(model), model

    def load(self, images: Images, prepare: Preprocessing, augment: Augment) -> LoadNoise:
        _, height, width = prepare.image
        rows, columns = grid_of(height, width, self.model.patch)
        return LoadNoise(images.x, augment, prepare, rows * columns)

    def describe(self, task: Representation) -> dict[str, Any]:
        return {"patches hidden": f"{self.model.hide:.0%}"}
