"""Latent diffusion of captioned images: text to image in small, as one run in stages.

The text encoder learns with the denoiser, or is that of a trained CLIP, frozen (`--text RUN`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import tyro
from torch import Tensor, nn

from descend.contracts import Batch, Exhibit
from descend.data.images.captions import Captions, caption_tokens, pixels
from descend.data.images.labelled import Preprocessing
from descend.data.streams.beside import BesideOnce
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.generate_images import TEST, VALID
from descend.kinds.latent_diffusion import (
    TWO_STAGES,
    DiffusionStage,
    Examples,
    FirstStage,
    ImagesInOrder,
    Latents,
    check_sides,
    check_stages,
)
from descend.kinds.origin import find_listed
from descend.kinds.prompt_judge import ask_pairs, judge_prompts
from descend.kinds.recipe import Recipe, describe_batch, fit_batch
from descend.models import load
from descend.models.clip_text_model import ClipTextModel
from descend.models.stable_diffusion_pipeline import StableDiffusionConfig, StableDiffusionPipeline
from descend.optim.rules import AdamW
from descend.optim.stages import InStages
from descend.ranges import Share
from descend.text.tokenizer import Tokenizer
from descend.weights.checkpoints import resolve_checkpoint


@dataclass(frozen=True)
class DiffuseCaptions(Recipe):
    """Latent diffusion of captioned images: descend sample RUN --prompt "a red circle"."""

    model: StableDiffusionConfig = field(default_factory=StableDiffusionConfig)
    data: Captions = field(default_factory=Captions)
    optim: AdamW = field(default_factory=AdamW)
    schedule: InStages = field(default_factory=InStages)
    first: FirstStage = field(default_factory=FirstStage)
    stages: tyro.conf.Suppress[tuple[DiffusionStage, ...]] = TWO_STAGES
    drop: Share = 0.1
    """Share of the training examples whose caption is hidden."""
    text: str = ""
    """A run or folder of a trained CLIP: its text encoder and tokenizer are taken, frozen; empty: one learns here."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_stages(self)

    def build(self) -> Parts:
        parts, loop = self.data.read(), self.loop
        tokenizer, encoder = self.find_text(parts.train.captions)
        torch.manual_seed(loop.seed)
        pipeline = self.make_pipeline(tokenizer, encoder)
        pipeline.use_tokenizer(tokenizer, parts.train.captions)
        shared = Latents(self, pipeline, pipeline.vae, pipeline.image)
        stages = [(stage, self.examples(parts.train, tokenizer, stage.only)) for stage in self.stages]
        batch = fit_batch(loop, min(len(examples.rows) for _, examples in stages))
        none = pipeline.tokenize([""])

        def condition(found: Batch) -> Tensor:
            tokens = torch.where(found["drop"][:, None], none.to(found["tokens"].device), found["tokens"])
            with torch.set_grad_enabled(torch.is_grad_enabled() and encoder is None):
                return pipeline.text_encoder(tokens).hidden

        learned: list[nn.Module] = [pipeline.unet] if encoder is not None else [pipeline.unet, pipeline.text_encoder]
        asks = None if self.data.path else lambda asked: judge_prompts(pipeline, asked, self.data.size)
        task = shared.task(stages, condition, learned, asks)
        valid = ImagesInOrder(self.examples(parts.valid, tokenizer), loop.batch)
        return Parts(
            task=task,
            model=pipeline,
            stream=shared.stream(stages, batch),
            valid=BesideOnce(valid, shared.draw(), VALID),
            optims=shared.optims(task),
            unit="images",
            units_per_batch=batch,
            facts={
                "data": self.data.path or "generated scenes",
                "training pairs": len(parts.train),
                "validation pairs": len(parts.valid),
                "different captions": len(set(parts.train.captions)),
                "code": "×".join(map(str, shared.code_shape(0))),
                "text encoder": f"frozen, of {self.text}" if self.text else "learned here",
                **describe_batch(loop, batch),
            },
            save_extra=self.preprocessing().save,
            exhibits=lambda: self.exhibits(pipeline, parts.train.captions),
        )

    def find_text(self, captions: list[str]) -> tuple[Tokenizer, ClipTextModel | None]:
        """The tokenizer, and the text encoder of a trained CLIP where one is named."""
        from descend.models.clip import Joint

        if not self.text:
            return self.data.learn_tokenizer(captions), None
        found, folder = load(self.text), resolve_checkpoint(self.text)
        if not isinstance(found, Joint):
            raise Mistake(f"--text {self.text}: it holds a {type(found).__name__}, not a CLIP")
        return Tokenizer.load(folder), found.text.requires_grad_(False)

    def make_pipeline(self, tokenizer: Tokenizer, encoder: ClipTextModel | None) -> StableDiffusionPipeline:
        """With the sizes that data and text encoder give."""
        c, side, end = self.model, self.data.size, tokenizer.end or 0
        check_sides(side, len(c.vae.widths) + len(c.unet.widths) - 2)
        text = replace(c.text_encoder, vocab=tokenizer.vocab, context=self.data.longest, end=end, pad=end)
        text = replace(text, start=tokenizer.special("bos_token") or 0) if encoder is None else encoder.config
        vae = replace(c.vae, size=side)
        unet = replace(c.unet, size=side // vae.factor, channels=vae.latent, out=vae.latent, context=text.width)
        try:
            made = StableDiffusionPipeline(replace(c, vae=vae, unet=unet, text_encoder=text))
        except ValueError as error:
            raise Mistake(f"--model: {error}") from None
        if encoder is not None:
            made.text_encoder = encoder
        return made

    def examples(self, part: Any, tokenizer: Tokenizer, only: str = "") -> Examples:
        """Pairs of one part, of which only those with a word in their caption."""
        rows = torch.tensor([i for i, text in enumerate(part.captions) if not only or only in text.split()])
        if not len(rows):
            raise Mistake(f"no caption has the word {only!r} that a stage asks for")
        captions = [part.captions[i] for i in rows.tolist()]
        tokens = caption_tokens(tokenizer, captions, self.data.longest)
        return Examples(lambda rows: pixels(part.x[rows]), {"tokens": tokens}, rows)

    def preprocessing(self) -> Preprocessing:
        """What an image goes through."""
        side, half = self.data.size, (0.5, 0.5, 0.5)
        return Preprocessing((3, side, side), half, half, edges=(side,))

    def files(self) -> dict[str, Path]:
        """With the images that the list names."""
        return super().files() | find_listed(self.data.path)

    def test(self) -> Iterable[Batch]:
        """The test pairs; for generated scenes, colours and shapes that never met in training, and prompts to judge."""
        parts = self.data.read()
        tokenizer, encoder = self.find_text(parts.train.captions)
        pipeline = self.make_pipeline(tokenizer, encoder)
        shared = Latents(self, pipeline, pipeline.vae, pipeline.image)
        examples = self.examples(parts.test, tokenizer)
        if not self.data.path:
            examples.beside["asked"] = ask_pairs(len(parts.test))
        return BesideOnce(ImagesInOrder(examples, self.loop.batch), shared.draw(), TEST)

    def exhibits(self, pipeline: StableDiffusionPipeline, captions: list[str]) -> list[Exhibit]:
        """Samples of some captions."""
        from descend.views.attempts import show_each
        from descend.views.latent_diffusion import show_prompts

        shown = tuple(dict.fromkeys(captions))[:8]
        return show_each({"Prompts": lambda: show_prompts(pipeline, shown, self.preprocessing())})
