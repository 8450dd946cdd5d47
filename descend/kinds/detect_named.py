"""Recipes of open-vocabulary detection: the names of the classes are texts, and some are kept out of the training.

What is judged at the end are objects of the names kept apart, among all names: chance is 1 of 48.

Systems: open-vocabulary-detection
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from descend.data.detection.colour_shapes import ColourShapes
from descend.engine.parts import Parts
from descend.kinds.detect import DetectObjects
from descend.models import config_class


@dataclass(frozen=True)
class DetectNamed(DetectObjects):
    """Which objects, by names that may be new?"""

    model: Any = field(default_factory=lambda: config_class("open_vocabulary_detector")())
    data: ColourShapes = field(default_factory=ColourShapes)

    def build(self) -> Parts:
        """As many names are kept apart as the data say."""
        if self.model.apart == self.data.apart:
            return super().build()
        return replace(self, model=replace(self.model, apart=self.data.apart)).build()
