"""Recipes of classifiers that also learn from a teacher: DeiT, with a token and a head for what the teacher says."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from descend.data.images.labelled import PREPROCESSOR, Preprocessing
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.images import ClassifyImages
from descend.models import config_class, load
from descend.weights.checkpoints import resolve_checkpoint
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class DistillImages(ClassifyImages):
    """A classifier with two heads. Without a teacher it is trained on the labels alone, by the mean of both heads."""

    model: Any = field(default_factory=lambda: config_class("deit")())
    teacher: str = ""
    """A run or a model folder that classifies the same images into the same classes."""
    head: ClassVar[str] = "WithTeacher"

    def build(self) -> Parts:
        parts = super().build()
        return replace(parts, facts={**parts.facts, "teacher": self.teacher}) if self.teacher else parts

    def task(self, model: Pretrained, prepare: Preprocessing) -> Any:
        """Distillation from the teacher, if there is one."""
        if not self.teacher:
            return super().task(model, prepare)
        if self.mix.ways() or self.attack.eps:
            raise Mistake(
                "--teacher cannot be combined with --mix or --attack: the teacher labels the images as they are"
            )
        from descend.tasks.distill import Distill

        return Distill(model, load_teacher(self.teacher, prepare))  # type: ignore[arg-type]


def load_teacher(path: str, prepare: Preprocessing) -> Pretrained:
    """The teacher, or a mistake where it was trained on other images or classes."""
    folder = resolve_checkpoint(path)
    if not (folder / PREPROCESSOR).exists():
        raise Mistake(f"--teacher {path} is not a classifier of images (no {PREPROCESSOR})")
    taught = Preprocessing.read(folder)
    for what, theirs, ours in (
        ("classes", taught.labels, prepare.labels),
        ("image size", taught.image, prepare.image),
        ("mean", taught.mean, prepare.mean),
        ("standard deviation", taught.std, prepare.std),
    ):
        if theirs != ours:
            raise Mistake(f"--teacher {path}: its {what} {theirs} differs from {ours}; train it on the same --data")
    return load(folder)
