"""Language modelling recipes: a text, a tokenizer learned from it, a causal model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch

from descend.data.streams.shards import process
from descend.data.text.plain import Passages, Text, Windows
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.recipe import Recipe, micro_batch
from descend.models import config_class, make_model
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.language import Language
from descend.views.text import show_language_model

VALID_WINDOWS = 512  # at most, spread evenly over the validation text


@dataclass(frozen=True)
class LanguageRecipe(Recipe):
    """A causal language model on plain text."""

    model: Any = field(default_factory=lambda: config_class("gpt2")())
    data: Text = field(default_factory=Text)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)

    def build(self) -> Parts:
        loop, context = self.loop, self.model.context
        corpus = self.data.open(context)
        tokenizer, train, valid = corpus.tokenizer, corpus.train, corpus.valid
        torch.manual_seed(loop.seed)
        try:
            config = replace(self.model, vocab=tokenizer.vocab)
            model: Any = make_model(config)
        except ValueError as error:
            raise Mistake(f"--model: {error}") from None
        micro = micro_batch(loop, loop.batch)
        return Parts(
            task=Language(model, corpus.valid_bytes / len(valid)),
            model=model,
            stream=Windows(train, context, micro, loop.seed, *process()),
            valid=Passages(valid, context, micro, VALID_WINDOWS),
            optims={"model": self.optim},
            unit="tokens",
            units_per_batch=loop.batch * context,
            facts={
                "data": self.data.path or "the Python documentation",
                **({"documents": corpus.documents} if corpus.documents > 1 else {}),
                "characters": corpus.characters,
                "training tokens": len(train),
                "validation tokens": len(valid),
                "vocabulary": tokenizer.vocab,
                "characters per token": round(corpus.characters / (len(train) + len(valid)), 2),
            },
            save_extra=tokenizer.save,
            exhibits=lambda: show_language_model(model, tokenizer, valid),
        )
