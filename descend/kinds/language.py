"""Language modelling recipes: a text, a tokenizer learned from it, a causal model."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from descend.data.streams.shards import process
from descend.data.text.plain import Passages, Text, Windows
from descend.engine.protocol import Exhibit, Parts
from descend.errors import Mistake
from descend.kinds.recipe import Recipe, micro_batch
from descend.metrics.language import bits_per_byte
from descend.models import model_class
from descend.models.gpt2 import GPT2Config
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.sampling.filters import Sampler
from descend.sampling.generate import generate
from descend.tasks.language import Language
from descend.text.tokenizer import Tokenizer
from descend.views.text import READ, reading

VALID_WINDOWS = 512  # at most, spread evenly over the validation text
PROMPTS = ("The ", "\n", "for ")


@dataclass(frozen=True)
class LanguageRecipe(Recipe):
    """A causal language model on plain text."""

    model: Any = field(default_factory=GPT2Config)
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
            model: Any = model_class(type(config).__module__.rpartition(".")[2])(config)
        except ValueError as error:
            raise Mistake(f"--model: {error}") from None
        micro = micro_batch(loop, loop.batch)
        return Parts(
            task=Language(model),
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
            summary=lambda scores: {
                "perplexity": math.exp(scores["loss"]),
                "bits_per_byte": bits_per_byte(scores["loss"] * len(valid), corpus.valid_bytes),
            },
            exhibits=lambda: [*samples(model, tokenizer), *reading(model, tokenizer, valid[: READ + 1])],
        )


def samples(model: Any, tokenizer: Tokenizer, tokens: int = 160) -> list[Exhibit]:
    """What the model writes after a few beginnings."""
    room, sampler = min(tokens, model.config.context - 8), Sampler(temperature=0.8)
    found = []
    for i, prompt in enumerate(PROMPTS):
        written = generate(model.decoder(), [tokenizer.encode(prompt)], room, sampler, seed=i)
        found.append(Exhibit("text", f"Sample {i + 1}", {"prompt": prompt, "text": tokenizer.decode(written[0])}))
    return found
