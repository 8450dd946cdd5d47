"""Recipes of students: a small model learns from a larger one that was trained on the same data.

    --teacher.path RUN                    the teacher's probabilities beside the labels
    --teacher.alpha 0.5                   how much the labels count; 0: the teacher alone
    --teacher.temperature 2               softened on both sides, times 2²; 1 is what MF prints
    --teacher.writes 500000               of a language model: the student reads what the teacher writes

Sequence-level distillation is the last flag with --teacher.alpha 1: what the teacher writes is all that it says.
Without a teacher the student is its own twin: the same model trained on the labels alone.

Systems: knowledge-distillation
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from descend.data.images.labelled import Preprocessing
from descend.data.streams.shards import process
from descend.data.text.plain import Windows
from descend.data.text.written import write_tokens
from descend.engine.parts import Parts
from descend.errors import Mistake, nearest
from descend.kinds.distill import load_teacher
from descend.kinds.images import ClassifyImages
from descend.kinds.language import LanguageRecipe
from descend.kinds.recipe import Recipe, fit_batch, micro_batch
from descend.models import load
from descend.ranges import Positive, Share, Whole
from descend.tasks.taught import TaughtClasses, TaughtLanguage
from descend.text.tokenizer import Tokenizer
from descend.weights.checkpoints import resolve_checkpoint
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class Teacher:
    """Who teaches, and how much it counts."""

    path: str = ""
    """A run or a model folder for the same classes or the same tokens; empty: labels alone."""
    alpha: Share = 0.5
    """Weight of the labels; the teacher has the rest."""
    temperature: Positive = 1.0
    """Both distributions are softened by it; 1: as they are."""

    @property
    def facts(self) -> dict[str, Any]:
        """For the run."""
        return {"teacher": self.path} if self.path else {}


@dataclass(frozen=True)
class WritingTeacher(Teacher):
    """A teacher that can write."""

    writes: Whole = 0
    """Tokens that the student learns from instead of the text: the teacher goes on from places of it; 0: none."""


@dataclass(frozen=True)
class TeachImages(ClassifyImages):
    """A classifier that a larger one teaches."""

    teacher: Teacher = field(default_factory=Teacher)

    def build(self) -> Parts:
        parts = super().build()
        return replace(parts, facts={**parts.facts, **self.teacher.facts})

    def task(self, model: Pretrained, prepare: Preprocessing) -> Any:
        """Distillation, if there is a teacher."""
        if not self.teacher.path:
            return super().task(model, prepare)
        if self.mix.ways() or self.attack.eps:
            raise Mistake("--teacher cannot be combined with --mix or --attack: it answers for images as they are")
        teacher = load_teacher(self.teacher.path, prepare)
        return TaughtClasses(model, teacher, self.teacher.alpha, self.teacher.temperature)


@dataclass(frozen=True)
class TeachLanguage(LanguageRecipe):
    """A causal language model that a larger one teaches."""

    teacher: WritingTeacher = field(default_factory=WritingTeacher)

    def build(self) -> Parts:
        parts = super().build()
        if not self.teacher.path:
            if self.teacher.writes:
                raise Mistake("--teacher.writes: who? Give --teacher.path RUN too")
            return parts
        model, task = parts.model, parts.task
        teacher = load_language_teacher(self.teacher.path, parts, model.config.vocab)
        if self.teacher.alpha < 1:  # else what it writes is all that it says
            per_token: Any = task.bytes_per_token
            task = TaughtLanguage(model, teacher, self.teacher.alpha, self.teacher.temperature, per_token)
        parts = replace(parts, task=task, facts={**parts.facts, **self.teacher.facts})
        return self.let_write(parts, teacher) if self.teacher.writes else parts

    def let_write(self, parts: Parts, teacher: Any) -> Parts:
        """The parts with a stream of what the teacher writes."""
        context, loop = self.model.context, self.loop
        text: Any = parts.stream
        tokens = write_tokens(teacher, text.tokens, self.teacher.writes, context + 1, seed=loop.seed)
        batch = fit_batch(loop, max((len(tokens) - 1) // context - 1, 1))
        stream = Windows(tokens, context, micro_batch(loop, batch), loop.seed, *process())
        return replace(parts, stream=stream, facts={**parts.facts, "tokens by the teacher": len(tokens)})


def load_language_teacher(path: str, parts: Parts, vocab: int) -> Pretrained:
    """The teacher, or a mistake where its tokens are not the student's."""
    folder = resolve_checkpoint(path)
    theirs: Any = load(folder)
    if not isinstance(getattr(theirs.config, "vocab", None), int) or theirs.config.vocab != vocab:
        said = getattr(theirs.config, "vocab", "no")
        raise Mistake(f"--teacher.path {path}: it has {said} tokens, the student {vocab}; train it on the same --data")
    if not same_tokens(Tokenizer.load(folder), parts):
        raise Mistake(f"--teacher.path {path}: its tokenizer is another one; train it on the same --data")
    return theirs


def same_tokens(theirs: Tokenizer, parts: Parts) -> bool:
    """Whether teacher and student cut a text into the same tokens: their tokenizers are the same."""
    if parts.save_extra is None:
        return False
    with TemporaryDirectory() as folder:
        parts.save_extra(Path(folder))
        return Tokenizer.load(folder).inner.to_str() == theirs.inner.to_str()


def make_student(recipe: Recipe, path: str, sizes: Mapping[str, Any], steps: int = 0) -> Recipe:
    """The recipe of a smaller model that a run of this recipe teaches; `sizes` are fields of its model's config."""
    if type(recipe) not in (ClassifyImages, TeachImages, LanguageRecipe, TeachLanguage):
        raise Mistake(
            f"--student: a {type(recipe).__name__} has no form of distillation here; classifiers of images and language"
            " models have"
        )
    known = {f.name: getattr(recipe.model, f.name) for f in fields(recipe.model)}
    for name, value in sizes.items():
        if name not in known:
            raise Mistake(f"--student {name}: unknown.{nearest(name, known)} Its model has: {', '.join(known)}")
        if type(value) is not type(known[name]):
            raise Mistake(f"--student {name}={value}: it is {known[name]!r} in the teacher; give another value like it")
    try:
        model = replace(recipe.model, **sizes)
    except (ValueError, TypeError) as error:
        raise Mistake(f"--student: {error}") from None
    shared = {f.name: getattr(recipe, f.name) for f in fields(recipe) if f.name not in ("teacher", "start", "compress")}
    shared |= {"model": model, "parameters": 0, "loop": replace(recipe.loop, steps=steps or recipe.loop.steps)}
    if isinstance(recipe, LanguageRecipe):
        return TeachLanguage(**shared, teacher=WritingTeacher(path, alpha=0.2))
    return TeachImages(**shared, teacher=Teacher(path, alpha=0.1, temperature=4.0))
