"""Starting from a trained network: flags that every recipe of image classifiers has.

    --start.path RUN                              its weights, with a new head for the new classes
    --start.freeze all                            feature extraction: only the head learns
    --start.freeze stem,stages.0                  these parts stay as they are
    --start.rate 0.1 --start.decay 0.8            what was taken over learns at a tenth, lower layers even less
    --start.freeze all --start.thaw 100           after each 100 steps one more part learns, the last one first
    --start.compare                               the same network from random weights first, to see what was gained

Systems: transfer-learning
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from descend.data.images.labelled import PREPROCESSOR, Preprocessing
from descend.data.images.source import ImageSource
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.models import load
from descend.nn.transfer import freeze, freeze_features, hold, inside, stages
from descend.optim.by_part import ByPart, Part, decay_rates, thaw_parts
from descend.ranges import NonNegative, PositiveShare, Whole
from descend.weights.checkpoints import resolve_checkpoint
from descend.weights.pretrained import Pretrained
from descend.weights.transfer import take_over

FROM_DATA = ("image", "classes", "channels", "side", "labels", "inputs", "outputs")  # what a recipe fills in


def load_source(path: str | Path) -> Pretrained:
    """The model to start from; one that was pre-trained without classes becomes a classifier with a new head."""
    from descend.models.beit import BeitForMaskedImageModeling, fine_tuned
    from descend.models.contrastive_encoder import ContrastiveEncoder
    from descend.models.ijepa import IJepa
    from descend.models.vit_mae import ViTMAE

    found = load(path)
    if isinstance(found, ContrastiveEncoder | IJepa | ViTMAE):
        return found.classifier()
    return fine_tuned(found, found.config.labels) if isinstance(found, BeitForMaskedImageModeling) else found


@dataclass(frozen=True)
class Start:
    """What to start from, and what of it is trained."""

    path: str = ""
    """A run or a model folder to start from: same family and sizes, any classes; empty: random weights."""
    freeze: str = "none"
    """none; all (only the head learns); or names of parts, separated by commas."""
    rate: NonNegative = 0.1
    """Learning rate of the pre-trained parts, as a share of the head's."""
    decay: PositiveShare = 1.0
    """The share is multiplied by this for every part further from the head."""
    thaw: Whole = 0
    """With --start.freeze all: steps after which one more part learns, the last one first; 0: never."""
    compare: bool = False
    """Train the same network from scratch too, for as many steps, and tell both scores."""

    def choose_config(self, config: Any) -> Any:
        """The model to build: the recipe's, or the one that was trained."""
        if not self.path:
            if self.freeze != "none" or self.thaw or self.compare:
                raise Mistake("--start.freeze, --start.thaw and --start.compare need a network; give --start.path too")
            return config
        found = load_source(self.path).config
        defaults = {f.name: getattr(type(found)(), f.name) for f in dataclasses.fields(found) if f.name in FROM_DATA}
        return replace(found, **defaults)  # the data fills these in

    def fit_images(self, data: Any) -> Any:
        """The images in the size and colours that the network was trained on, where no others are asked for."""
        if not self.path or not isinstance(data, ImageSource):
            return data
        if data.size or not (resolve_checkpoint(self.path) / PREPROCESSOR).exists():
            return data
        channels, height, width = Preprocessing.read(resolve_checkpoint(self.path)).image
        return replace(data, size=height if height == width else 0, channels=data.channels or channels)

    def rescale(self, prepare: Preprocessing) -> Preprocessing:
        """Pixels are rescaled to what the pre-trained network was trained on."""
        if not self.path or not (resolve_checkpoint(self.path) / PREPROCESSOR).exists():
            return prepare
        old = Preprocessing.read(resolve_checkpoint(self.path))
        if old.image[0] != prepare.image[0]:
            raise Mistake(
                f"--start.path {self.path} was trained on images of {old.image[0]} channels, these have"
                f" {prepare.image[0]}; give --data.channels {old.image[0]}"
            )
        return replace(prepare, mean=old.mean, std=old.std)

    def apply(self, parts: Parts) -> Parts:
        """The parts with the trained weights, some of them frozen, and a learning rate for each."""
        if not self.path:
            return parts
        if self.rate < 0 or self.decay <= 0 or self.thaw < 0:
            raise Mistake(
                f"--start.rate {self.rate}, --start.decay {self.decay}, --start.thaw {self.thaw}: must not be negative"
            )
        model = parts.model
        name = copy_weights(model, load_source(self.path), self.path)
        below = [part for part in stages(model) if not inside(part, [name])]
        rates = decay_rates(below, self.rate, self.decay)
        if self.thaw:
            if self.freeze != "all":
                raise Mistake("--start.thaw starts with everything frozen; give --start.freeze all too")
            rates = thaw_parts(rates, self.thaw)
            for part in below:
                hold(model.get_submodule(part))  # the batch statistics stay those of the trained network
        elif self.freeze == "all":
            freeze_features(model, name)
        elif self.freeze != "none":
            freeze(model, [part.strip() for part in self.freeze.split(",")])
        optims: dict[str, Any] = {player: ByPart(rule, (*rates, Part(name))) for player, rule in parts.optims.items()}
        count = sum(p.numel() for p in model.parameters() if p.requires_grad)
        added = {"started from": self.path, "frozen": self.freeze, "parameters that learn": count}
        return replace(parts, optims=optims, facts={**parts.facts, **added})


def copy_weights(model: Pretrained, source: Pretrained, path: str) -> str:
    """Copy all but the head, and the head too where the classes have the same names; returns the head's name."""
    if type(model) is not type(source):
        raise Mistake(
            f"--start.path {path} holds a {type(source).__name__}, this recipe trains a {type(model).__name__}"
        )
    from descend.interpret.representations import find_head
    from descend.models.vit import ViTEncoder

    if isinstance(source, ViTEncoder) and source.config.side != model.config.side:
        source = source.at_side(model.config.side)  # positions for these images, in between those that were learned
    name = find_head(model)
    fresh = {k: v.clone() for k, v in model.state_dict().items() if inside(k, [name])}
    new = take_over(model, source, ())
    if wrong := [k for k in new if not inside(k, [name])]:
        raise Mistake(f"--start.path {path}: {wrong[0]} does not fit these images; use its own --data.size")
    if read_labels(model) != read_labels(source):
        model.load_state_dict(model.state_dict() | fresh)
    return name


def read_labels(model: Any) -> object:
    """What the classes are called, where the model knows it; else nothing is known, and no two models agree."""
    return getattr(model.config, "labels", model)
