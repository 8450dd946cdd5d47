"""Recipes of pairs of texts: read a source, write a target; for T5, the Transformer and recurrent models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.streams.shards import process
from descend.data.text.text_to_text import BudgetedPairs, PairsInOrder, ShuffledPairs, TextPairs, specials
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.recipe import Judged, Recipe, describe_batch, fit_batch, micro_batch
from descend.models import config_class, make_model
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.ranges import Fraction, Length
from descend.sampling.answer import answer_sources
from descend.tasks.sequence_to_sequence import Translation
from descend.text.tokenizer import Tokenizer
from descend.views.pairs import PairsView

VALID_PAIRS = 1024  # at most, spread evenly over the validation pairs
LONGEST_PAIR = 10**9  # tokens: no pair is left out of a test


@dataclass(frozen=True)
class PairsRecipe(Recipe):
    """An encoder-decoder model on pairs of texts."""

    model: Any = field(default_factory=lambda: config_class("t5")())
    data: TextPairs = field(default_factory=TextPairs)
    smoothing: Fraction = 0.0
    """Share of each target's probability that is spread over all tokens."""
    written: Length = 64
    """Validation pairs decoded at each evaluation, for BLEU and exact match."""
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)

    def build(self) -> Parts:
        loop, split = self.loop, self.data.read()
        tokenizer = self.data.learn_tokenizer(split.train)
        pad, end = specials(tokenizer)
        train = self.data.arrays(split.train, tokenizer, "training")
        valid = spread_examples(self.data.arrays(split.valid, tokenizer, "validation"), VALID_PAIRS)
        valid["reference"] = mark_written(valid["ids"], self.written)
        torch.manual_seed(loop.seed)
        try:
            config = replace(self.model, vocab=tokenizer.vocab, pad=pad, start=pad, end=end)
            model: Any = make_model(config)
        except ValueError as error:
            raise Mistake(f"--model: {error}") from None
        batch, stream = self.stream(train, pad)
        micro = micro_batch(loop, batch) if not self.data.budget else batch
        write = lambda x: [tokenizer.decode(row) for row in answer_sources(model, x, self.data.longest)]
        view = PairsView(model, tokenizer, valid, [split.valid[i] for i in valid["ids"].tolist()], self.data.longest)
        return Parts(
            task=Translation(model, pad, pad, self.smoothing, write, [y for _, y in (*split.valid, *split.test)]),
            model=model,
            stream=stream,
            valid=PairsInOrder(valid, pad, max(micro, 64)),
            optims={"model": self.optim},
            unit="pairs",
            units_per_batch=batch,
            facts={
                "data": self.data.path or f"generated: {', '.join(self.data.tasks)}",
                "training pairs": len(train["ids"]),
                "left out as too long": len(split.train) - len(train["ids"]),
                "validation pairs": len(valid["ids"]),
                **split.describe_leaks(),
                "vocabulary": tokenizer.vocab,
                "tokens of a target": round(float((train["y"] != pad).sum(1).float().mean()), 1),
                **(stream.describe() if isinstance(stream, BudgetedPairs) else describe_batch(loop, batch)),
            },
            save_extra=tokenizer.save,
            exhibits=view.show,
        )

    def stream(self, train: Batch, pad: int) -> tuple[int, BudgetedPairs | ShuffledPairs]:
        """Pairs of a step (on average, where there is a budget of tokens), and the batches."""
        loop, data = self.loop, self.data
        if data.budget:
            found = BudgetedPairs(train, pad, data.budget, loop.seed, loop.accumulate, *process())
            return max(1, len(train["ids"]) // len(found.plan(0))), found
        batch = fit_batch(loop, len(train["ids"]))
        return batch, ShuffledPairs(train, pad, batch, micro_batch(loop, batch), loop.seed, *process())

    def test(self) -> Iterable[Batch]:
        """The test part of a folder, all of it to be written."""
        split = self.data.read()
        if not split.test:
            return ()
        tokenizer = self.data.learn_tokenizer(split.train)
        arrays = replace(self.data, longest=LONGEST_PAIR).arrays(split.test, tokenizer, "test")  # none is left out
        arrays["reference"] = len(split.valid) + arrays["ids"]
        return PairsInOrder(arrays, specials(tokenizer)[0], 64)

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """Every pair of a file, or the test pairs of a folder, all of them to be written."""
        data, tokenizer = replace(self.data, path=path, longest=LONGEST_PAIR), Tokenizer.load(folder)
        pairs = data.read_unseen()
        arrays = data.arrays(pairs, tokenizer, "new")
        arrays["reference"] = arrays["ids"]
        pad, _ = specials(tokenizer)
        write = lambda x: [tokenizer.decode(row) for row in answer_sources(model, x, self.data.longest)]
        task = Translation(model, pad, pad, self.smoothing, write, [y for _, y in pairs])
        return Judged(task, PairsInOrder(arrays, pad, 64))


def mark_written(ids: Tensor, count: int) -> Tensor:
    """The reference of `count` pairs spread evenly over all, -1 for the others."""
    chosen = torch.linspace(0, len(ids) - 1, min(count, len(ids))).long()
    return torch.full_like(ids, -1).scatter(0, chosen, ids[chosen])


def spread_examples(arrays: dict[str, Tensor], limit: int) -> dict[str, Tensor]:
    """At most `limit` of the examples, spread evenly."""
    n = len(arrays["ids"])
    rows = torch.linspace(0, n - 1, min(limit, n)).long()
    return {name: tensor[rows] for name, tensor in arrays.items()}
