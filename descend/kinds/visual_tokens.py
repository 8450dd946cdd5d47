"""Recipes whose images become tokens: a VQ-VAE with an autoregressive prior, and DALL-E on images with captions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch, Exhibit
from descend.data.images.captions import Captions, pixels
from descend.data.images.labelled import Preprocessing, Splits
from descend.data.images.processor import write_processor
from descend.data.streams.arrays import Shuffled
from descend.data.streams.shards import process
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.files import write_json
from descend.kinds.captioned import CaptionedInOrder, CaptionedStream, Texts
from descend.kinds.generate_images import GenerateImages, Learner
from descend.kinds.origin import find_listed
from descend.kinds.prompt_judge import ask_pairs, judge_prompts
from descend.kinds.recipe import Recipe, describe_batch, fit_batch, micro_batch
from descend.models.dalle import DallE, DalleConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.ranges import NonNegative, Share
from descend.seeds import generator
from descend.tasks.visual_tokens import TEXT, VisualTokens
from descend.text.tokenizer import Tokenizer
from descend.views.samples import first_images
from descend.weights.pretrained import Pretrained

PLACED = 256  # training images whose codes place the codebook's entries


@dataclass(frozen=True)
class TokenizeImages(GenerateImages):
    """A VQ-VAE and a transformer that learns its tokens, on images without captions."""

    model: DalleConfig = field(default_factory=DalleConfig)
    optim: AdamW = field(default_factory=AdamW)
    commitment: NonNegative = 0.25
    """β of ‖z_e − sg[e]‖²."""

    def assemble(self, prepare: Preprocessing) -> Learner:
        codes = replace(self.model.codes, image=prepare.image)
        model = make_dalle(replace(self.model, codes=codes, words=1, caption=1, start=0))
        return Learner(VisualTokens(model, self.commitment), model, {"model": self.optim})

    def build(self) -> Parts:
        parts = super().build()
        splits = self.data.read_unlabelled()
        rows = first_images(splits.train, PLACED)
        place_entries(parts.model, self.prepare(splits).standardize(rows))
        return parts

    def exhibits(self, model: Pretrained, splits: Splits, prepare: Preprocessing) -> list[Exhibit]:
        """Samples, their nearest training images, and images through tokens and back."""
        from descend.views.attempts import show_each
        from descend.views.visual_tokens import show_token_images

        shown = {"Through tokens and back": lambda: show_token_images(model, splits, prepare)}
        return super().exhibits(model, splits, prepare) + show_each(shown)


@dataclass(frozen=True)
class TextToImageTokens(Recipe):
    """DALL-E: captions and image tokens in one transformer. Afterwards: descend sample RUN --prompt "a red circle"."""

    model: DalleConfig = field(default_factory=DalleConfig)
    data: Captions = field(default_factory=Captions)
    optim: AdamW = field(default_factory=AdamW)
    schedule: Cosine = field(default_factory=Cosine)
    commitment: NonNegative = 0.25
    """β of ‖z_e − sg[e]‖²."""
    text: Share = TEXT
    """Share of the text's loss."""

    def build(self) -> Parts:
        loop, parts = self.loop, self.data.read()
        tokenizer = self.data.learn_tokenizer(parts.train.captions)
        texts = Texts(tokenizer, self.data.longest)
        batch = fit_batch(loop, len(parts.train))
        torch.manual_seed(loop.seed)
        model = make_dalle(self.fit_sizes(tokenizer))
        model.read_prompts = lambda prompts: texts(list(prompts))
        place_entries(model, pixels(parts.train.x[:PLACED]))
        arrays = texts.arrays(parts.train)
        asks = None if self.data.path else lambda asked: judge_prompts(model, asked, self.data.size)
        return Parts(
            task=VisualTokens(model, self.commitment, self.text, asks),
            model=model,
            stream=CaptionedStream(Shuffled(arrays, micro_batch(loop, batch), loop.seed, *process())),
            valid=CaptionedInOrder(texts.arrays(parts.valid), loop.batch),
            optims={"model": self.optim},
            unit="pairs",
            units_per_batch=batch,
            facts={
                "data": self.data.path or "generated scenes",
                "training pairs": len(parts.train),
                "validation pairs": len(parts.valid),
                "test pairs": len(parts.test),
                **parts.facts,
                "words": tokenizer.vocab,
                "image tokens": f"{model.config.places} of {model.config.codes.vocab}",
                **describe_batch(loop, batch),
            },
            save_extra=lambda folder: self.save(folder, tokenizer),
            exhibits=lambda: self.exhibits(model, parts.valid.captions),
        )

    def fit_sizes(self, tokenizer: Tokenizer) -> DalleConfig:
        """The config with what the data gives."""
        codes = replace(self.model.codes, image=(3, self.data.size, self.data.size))
        start = tokenizer.special("bos_token") or 0
        return replace(self.model, codes=codes, words=tokenizer.vocab, caption=self.data.longest, start=start)

    def save(self, folder: Path, tokenizer: Tokenizer) -> None:
        """The tokenizer and what an image goes through, beside the weights."""
        tokenizer.save(folder)
        side, half = self.data.size, (0.5, 0.5, 0.5)
        values = write_processor((3, side, side), half, half, (side,), 2, "rgb")
        write_json(Path(folder) / "preprocessor_config.json", values)

    def exhibits(self, model: DallE, captions: list[str]) -> list[Exhibit]:
        """Images for captions of validation."""
        from descend.views.attempts import show_each
        from descend.views.visual_tokens import show_captions

        return show_each({"Images for captions": lambda: show_captions(model, captions)})

    def files(self) -> dict[str, Path]:
        """With the images that the list names."""
        return super().files() | find_listed(self.data.path)

    def test(self) -> Iterable[Batch]:
        """The test pairs; for generated scenes, colours and shapes that never met in training, and prompts to judge."""
        parts = self.data.read()
        texts = Texts(self.data.learn_tokenizer(parts.train.captions), self.data.longest)
        arrays = texts.arrays(parts.test)
        if not self.data.path:
            arrays["asked"] = ask_pairs(len(parts.test))
        return CaptionedInOrder(arrays, self.loop.batch)


@torch.no_grad()
def place_entries(model: Any, x: Tensor) -> None:
    """The codebook begins with codes of training images, so that all entries are in use."""
    codes = model.codes.encode(x).flatten(0, -2)
    try:
        model.codes.quantizer.place_entries(codes, generator(0))
    except ValueError as error:
        raise Mistake(f"--model.codes.vocab {model.config.codes.vocab}: {error}") from None


def make_dalle(config: DalleConfig) -> DallE:
    """The model, or a mistake about its sizes."""
    try:
        return DallE(config)
    except ValueError as error:
        raise Mistake(f"--model: {error}") from None
