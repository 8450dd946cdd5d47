"""Language modelling recipes: a text, a tokenizer learned from it, a causal model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import torch

from descend.data.streams.shards import process
from descend.data.text.plain import Passages, Text, Windows, count_windows
from descend.data.text.repeats import describe_repeats
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.recipe import Judged, Recipe, describe_batch, fit_batch, micro_batch
from descend.models import config_class, make_model
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.language import Language
from descend.text.tokenizer import Tokenizer
from descend.views.text import show_language_model

VALID_WINDOWS = 512  # at most, spread evenly over the validation text


@dataclass(frozen=True)
class LanguageRecipe(Recipe):
    """A causal language model on plain text."""

    model: Any = field(default_factory=lambda: config_class("gpt2")())
    data: Text = field(default_factory=Text)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)
    package: ClassVar[str] = "python"

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
        batch = fit_batch(loop, count_windows(len(train), context))
        micro = micro_batch(loop, batch)
        return Parts(
            task=Language(model, corpus.valid_bytes / len(valid)),
            model=model,
            stream=Windows(train, context, micro, loop.seed, *process()),
            valid=Passages(valid, context, micro, VALID_WINDOWS),
            optims={"model": self.optim},
            unit="tokens",
            units_per_batch=batch * context,
            facts={
                "data": self.data.path or "the Python documentation",
                **({"documents": corpus.documents} if corpus.documents > 1 else {}),
                "characters": corpus.characters,
                "training tokens": len(train),
                "validation tokens": len(valid),
                **describe_repeats(train, valid),
                "vocabulary": tokenizer.vocab,
                "characters per token": round(corpus.characters / (len(train) + len(valid)), 2),
                **describe_batch(loop, batch),
            },
            save_extra=tokenizer.save,
            exhibits=lambda: show_language_model(model, tokenizer, valid),
        )

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """A text from its beginning to its end, in windows of the model's context."""
        text, tokenizer = replace(self.data, path=path).read(), Tokenizer.load(folder)
        tokens = torch.tensor(tokenizer.encode(text), dtype=torch.int32)
        if len(tokens) < 2:
            raise Mistake(f"{path}: {len(tokens)} tokens; a language model is judged by 2 or more")
        passages = Passages(tokens, min(self.model.context, len(tokens) - 1), micro_batch(self.loop, self.loop.batch))
        return Judged(Language(model, len(text.encode()) / len(tokens)), passages)
