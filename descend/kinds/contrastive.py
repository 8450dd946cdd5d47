"""Contrastive recipes: two encoders learn from images and their captions which belong together (CLIP).

Validation images have colours and shapes of training; the test images of the generated scenes have the pairs of them
that training never saw, and are named among all classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from descend.contracts import Batch
from descend.data.images.captions import Captions
from descend.data.images.processor import write_processor
from descend.data.streams.arrays import Shuffled
from descend.data.streams.shards import process
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.files import write_json
from descend.kinds.captioned import CaptionedInOrder, CaptionedStream, Texts
from descend.kinds.origin import find_listed
from descend.kinds.recipe import Judged, Recipe, describe_batch, fit_batch, micro_batch
from descend.metrics.zero_shot import prompts
from descend.models import config_class, make_model
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.contrastive import Contrastive
from descend.text.tokenizer import Tokenizer
from descend.views.contrastive import ContrastiveView

TEMPLATES = ("a photo of {}", "a picture of {}", "there is {}", "{}")


@dataclass(frozen=True)
class ContrastRecipe(Recipe):
    """CLIP on pairs of image and caption. A whole batch is one set of negatives: --accumulate makes it smaller."""

    model: Any = field(default_factory=lambda: config_class("clip")())
    """A ClipConfig or a ClipResNetConfig."""
    data: Captions = field(default_factory=Captions)
    optim: AdamW = field(default_factory=AdamW)
    schedule: Cosine = field(default_factory=Cosine)

    def build(self) -> Parts:
        loop, parts = self.loop, self.data.read()
        tokenizer = self.data.learn_tokenizer(parts.train.captions)
        texts = Texts(tokenizer, self.data.longest)
        batch = fit_batch(loop, len(parts.train))
        torch.manual_seed(loop.seed)
        config = self.fit_sizes(tokenizer)
        model: Any = make_model(config)
        said = texts(prompts(parts.classes, TEMPLATES)) if parts.classes else None
        classes = None if said is None else said.unflatten(0, (len(parts.classes), -1))
        return Parts(
            task=Contrastive(model, classes),
            model=model,
            stream=CaptionedStream(
                Shuffled(texts.arrays(parts.train), micro_batch(loop, batch), loop.seed, *process())
            ),
            valid=CaptionedInOrder(texts.arrays(parts.valid), loop.batch),
            optims={"model": self.optim},
            unit="pairs",
            units_per_batch=batch,
            facts={
                "data": self.data.path or "generated scenes",
                "training pairs": len(parts.train),
                "validation pairs": len(parts.valid),
                "test pairs": len(parts.test),
                "different captions": len(set(parts.train.captions)),
                **parts.facts,
                "vocabulary": tokenizer.vocab,
                "held out": ", ".join(parts.classes[i] for i in parts.held_out) or "nothing",
                **describe_batch(loop, batch),
            },
            save_extra=lambda folder: self.save(folder, tokenizer),
            exhibits=lambda: ContrastiveView(model, texts, parts, TEMPLATES).show(),
        )

    def fit_sizes(self, tokenizer: Tokenizer) -> Any:
        """The config with what the data gives."""
        c, longest, end = self.model, self.data.longest, tokenizer.end
        text = replace(c.text, vocab=tokenizer.vocab, context=longest, projected=c.width)
        text = replace(text, start=tokenizer.special("bos_token") or 0, end=end or 0, pad=end or 0)
        try:
            return replace(c.resize(self.data.size), text=text)
        except ValueError as error:
            raise Mistake(f"--data.size {self.data.size}: {error}") from None

    def save(self, folder: Path, tokenizer: Tokenizer) -> None:
        """The tokenizer and what an image goes through, beside the weights."""
        tokenizer.save(folder)
        side, half = self.data.size, (0.5, 0.5, 0.5)
        values = write_processor((3, side, side), half, half, (side,), 2, "rgb")
        write_json(Path(folder) / "preprocessor_config.json", values)

    def files(self) -> dict[str, Path]:
        """With the images that the list names."""
        return super().files() | find_listed(self.data.path)

    def test(self) -> Iterable[Batch]:
        """The test pairs; for generated scenes, colours and shapes that never met in training."""
        parts = self.data.read()
        texts = Texts(self.data.learn_tokenizer(parts.train.captions), self.data.longest)
        return CaptionedInOrder(texts.arrays(parts.test), self.loop.batch)

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """New images and captions: does each image find its caption among those of its batch?"""
        texts = Texts(Tokenizer.load(folder), self.data.longest)
        return Judged(Contrastive(model), CaptionedInOrder(texts.arrays(self.data.read_unseen(path)), self.loop.batch))
