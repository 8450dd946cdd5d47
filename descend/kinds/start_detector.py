"""Starting from a trained detector: its weights, with new layers for new classes.

    --start.path RUN                    a run or a public folder of the same family, any classes
    --start.freeze all                  only the class heads learn
    --start.freeze backbone,neck        these parts stay as they are, their batch statistics too
    --start.rate 0.1                    what was taken over learns at a tenth of the rate

What depends on the classes is found by building the model for two numbers of classes: tensors whose shape differs are
those of the class heads. They are new where the classes have other names. MF does not say which layers are frozen
(MF-C.81); nothing is, unless it is asked for.

Systems: detection-training-loop
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from typing import Any

import torch

from descend.data.detection.prepare import DetectionPreprocessing
from descend.data.images.labelled import PREPROCESSOR
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.models import load, make_model
from descend.nn.transfer import freeze, inside, stages
from descend.optim.by_part import ByPart, Part
from descend.ranges import NonNegative
from descend.weights.checkpoints import resolve_checkpoint
from descend.weights.labels import Labels
from descend.weights.pretrained import Pretrained
from descend.weights.transfer import take_over


@dataclass(frozen=True)
class DetectorStart:
    """What to start from, and what of it is trained."""

    path: str = ""
    """A run or a model folder to start from: same family, any classes; empty: random weights."""
    freeze: str = "none"
    """none; all (only the class heads learn); or names of parts, separated by commas."""
    rate: NonNegative = 0.1
    """Learning rate of what was taken over, as a share of that of the new layers."""

    def choose_config(self, config: Any) -> Any:
        """The model to build: the recipe's, or the one that was trained, for the classes of these data."""
        if self.path:
            found = load(self.path)
            if type(found.config) is not type(config):
                kind = type(config).__name__.removesuffix("Config")
                raise Mistake(f"--start.path {self.path} holds a {type(found).__name__}, this recipe trains a {kind}")
            return replace(found.config, labels=Labels())
        if self.freeze != "none":
            raise Mistake("--start.freeze needs a detector to start from; give --start.path too")
        return config

    def rescale(self, prepare: DetectionPreprocessing) -> DetectionPreprocessing:
        """Pixels are standardized as the trained detector saw them."""
        if not self.path or not (resolve_checkpoint(self.path) / PREPROCESSOR).exists():
            return prepare
        old = DetectionPreprocessing.read(resolve_checkpoint(self.path))
        return replace(prepare, mean=old.mean, std=old.std)

    def apply(self, parts: Parts) -> Parts:
        """The parts with the trained weights, some of them frozen, and a lower rate for what was taken over."""
        if not self.path:
            return parts
        model, source = parts.model, load(self.path)
        new = copy_detector(model, source)
        if self.freeze == "all":
            freeze(model, [name for name, _ in model.named_parameters() if not inside(name, new)])
            freeze(model, [part for part in stages(model) if not any(inside(name, [part]) for name in new)])
        elif self.freeze != "none":
            freeze(model, [part.strip() for part in self.freeze.split(",")])
        rates = (Part("", self.rate), *(Part(name) for name in new))
        count = sum(p.numel() for p in model.parameters() if p.requires_grad)
        added = {"started from": self.path, "frozen": self.freeze, "parameters that learn": count}
        optims: dict[str, Any] = {player: ByPart(rule, rates) for player, rule in parts.optims.items()}
        return replace(parts, optims=optims, facts={**parts.facts, **added})


def copy_detector(model: Pretrained, source: Pretrained) -> list[str]:
    """Copy every tensor but those of the class heads, and these too where the classes have the same names.

    Returns the names of the heads' tensors, and of others that do not fit."""
    heads = find_class_tensors(model.config)
    kept = {name: tensor.clone() for name, tensor in model.state_dict().items() if name in heads}
    new = take_over(model, source, ())
    if model.config.labels != source.config.labels:
        model.load_state_dict(model.state_dict() | kept)
    return sorted({*new, *heads})


def find_class_tensors(config: Any) -> set[str]:
    """The tensors whose shape depends on the number of classes."""
    if "labels" not in {f.name for f in dataclasses.fields(config)}:
        raise Mistake(f"{type(config).__name__} does not name its classes, so it has no head to replace")
    shapes = []
    for count in (len(config.labels), len(config.labels) + 1):
        with torch.device("meta"):
            sketch = make_model(replace(config, labels=Labels(tuple(f"class {k}" for k in range(count)))))
        shapes.append({name: tensor.shape for name, tensor in sketch.state_dict().items()})
    few, more = shapes
    return {name for name in few if few[name] != more[name]}
