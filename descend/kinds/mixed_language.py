"""Recipes of language models on several texts by shares and stages; the loss of each source is told.

loss        of the validation text of all sources          docs_loss, ..   of each, by its name

Systems: data-mixture-sampler
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.streams.mixture import Mixture, describe_mixture
from descend.data.streams.shards import process
from descend.data.text.mixed import TextMixture
from descend.data.text.plain import Passages, Windows, count_windows
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.recipe import Recipe, describe_batch, fit_batch, micro_batch
from descend.models import config_class, make_model
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.language import MixedLanguage
from descend.views.text import show_language_model

VALID_WINDOWS = 256  # of each source, at most, spread evenly over its validation text


@dataclass(frozen=True)
class MixedLanguageRecipe(Recipe):
    """A causal language model on a mixture of texts."""

    model: Any = field(default_factory=lambda: config_class("gpt2")())
    data: TextMixture = field(default_factory=TextMixture)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)

    def build(self) -> Parts:
        loop, context = self.loop, self.model.context
        texts = self.data.open(context)
        torch.manual_seed(loop.seed)
        try:
            model: Any = make_model(replace(self.model, vocab=texts.tokenizer.vocab))
        except ValueError as error:
            raise Mistake(f"--model: {error}") from None
        windows = {name: count_windows(len(tokens), context) for name, tokens in texts.train.items()}
        batch = fit_batch(loop, sum(windows.values()))
        micro = micro_batch(loop, batch)
        stages = self.data.stages(texts.train, context, loop.steps * batch)
        sources = {name: Windows(tokens, context, 1, loop.seed) for name, tokens in texts.train.items()}
        stream = Mixture(sources, stages, micro, loop.seed, *process())
        return Parts(
            task=MixedLanguage(model, list(sources), texts.bytes_per_token),
            model=model,
            stream=stream,
            valid=SourcesInOrder(texts.valid, context, micro),
            optims={"model": self.optim},
            unit="tokens",
            units_per_batch=batch * context,
            facts={
                "data": ", ".join(sources),
                **describe_mixture(stream, windows, loop.steps * batch),
                "training tokens": sum(map(len, texts.train.values())),
                "validation tokens": sum(map(len, texts.valid.values())),
                "vocabulary": texts.tokenizer.vocab,
                **describe_batch(loop, batch),
            },
            save_extra=texts.tokenizer.save,
            exhibits=lambda: show_language_model(model, texts.tokenizer, torch.cat(list(texts.valid.values()))),
        )


class SourcesInOrder:
    """The validation text of each source, one after the other, with the source's number."""

    def __init__(self, texts: dict[str, Tensor], context: int, batch: int):
        self.sets: list[Iterable[Batch]] = [Passages(x, context, batch, VALID_WINDOWS) for x in texts.values()]

    def __iter__(self) -> Iterator[Batch]:
        for number, passages in enumerate(self.sets):
            for batch in passages:
                yield {**batch, "source": torch.full((len(batch["x"]),), number)}
