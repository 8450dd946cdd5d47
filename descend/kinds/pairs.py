"""Recipes of pairs of texts: read a source, write a target; for T5, the Transformer and recurrent models."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from descend.data.streams.shards import process
from descend.data.text.text_to_text import Pair, PairsInOrder, ShuffledPairs, TextPairs, specials
from descend.engine.protocol import Batch, Exhibit, Parts
from descend.errors import Mistake
from descend.kinds.recipe import Recipe, micro_batch
from descend.metrics.translation import as_rows, bleu, bleu_is_there, error_by_position, exact_match, overlap
from descend.models.seq2seq import Seq2Seq, Seq2SeqConfig
from descend.models.t5 import T5, T5Config
from descend.models.transformer import Transformer, TransformerConfig
from descend.ops.teacher_forcing import shift_right
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.sampling.generate import generate
from descend.tasks.sequence_to_sequence import SequenceToSequence
from descend.text.tokenizer import Tokenizer

VALID_PAIRS = 1024  # at most, spread evenly over the validation pairs
SHOWN = 12
GROUPS = 8  # of sources of like length, in the report
MODELS: dict[type, Any] = {T5Config: T5, TransformerConfig: Transformer, Seq2SeqConfig: Seq2Seq}


@dataclass(frozen=True)
class PairsRecipe(Recipe):
    """An encoder-decoder model on pairs of texts."""

    model: Any = field(default_factory=T5Config)
    data: TextPairs = field(default_factory=TextPairs)
    smoothing: float = 0.0
    """Share of each target's probability that is spread over all tokens."""
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)

    def build(self) -> Parts:
        loop, split = self.loop, self.data.read()
        tokenizer = self.data.learn_tokenizer(split.train)
        pad, end = specials(tokenizer)
        train = self.data.arrays(split.train, tokenizer, "training")
        valid = spread(self.data.arrays(split.valid, tokenizer, "validation"), VALID_PAIRS)
        torch.manual_seed(loop.seed)
        try:
            config = replace(self.model, vocab=tokenizer.vocab, pad=pad, start=pad, end=end)
            model = MODELS[type(self.model)](config)
        except ValueError as error:
            raise Mistake(f"--model: {error}") from None
        micro = micro_batch(loop, loop.batch)
        writer = Writer(model, tokenizer, valid, [split.valid[i] for i in valid["ids"].tolist()], self.data.longest)
        return Parts(
            task=SequenceToSequence(model, pad, pad, self.smoothing),
            model=model,
            stream=ShuffledPairs(train, pad, loop.batch, micro, loop.seed, *process()),
            valid=PairsInOrder(valid, pad, max(micro, 64)),
            optims={"model": self.optim},
            unit="pairs",
            units_per_batch=loop.batch,
            facts={
                "data": self.data.path or f"generated: {', '.join(self.data.tasks)}",
                "training pairs": len(train["ids"]),
                "left out as too long": len(split.train) - len(train["ids"]),
                "validation pairs": len(valid["ids"]),
                "vocabulary": tokenizer.vocab,
                "tokens of a target": round(float((train["y"] != pad).sum(1).float().mean()), 1),
            },
            save_extra=tokenizer.save,
            summary=lambda scores: {"perplexity": math.exp(scores["loss"])} | writer.scores(),
            exhibits=writer.exhibits,
        )

    def test(self) -> Iterable[Batch]:
        """The test part of a folder."""
        split = self.data.read()
        if not split.test:
            return ()
        tokenizer = self.data.learn_tokenizer(split.train)
        return PairsInOrder(self.data.arrays(split.test, tokenizer, "test"), specials(tokenizer)[0], 64)

    def test_summary(self, model: Any) -> dict[str, float]:
        """Exact match and BLEU of the whole test part, greedy."""
        split = self.data.read()
        tokenizer = self.data.learn_tokenizer(split.train)
        arrays = replace(self.data, longest=10**9).arrays(split.test, tokenizer, "test")
        return Writer(model, tokenizer, arrays, split.test, self.data.longest).scores()


def spread(arrays: dict[str, Tensor], limit: int) -> dict[str, Tensor]:
    """At most `limit` of the examples, spread evenly."""
    n = len(arrays["ids"])
    rows = torch.linspace(0, n - 1, min(limit, n)).long()
    return {name: tensor[rows] for name, tensor in arrays.items()}


@dataclass
class Writer:
    """What the model writes for the validation pairs."""

    model: T5 | Transformer | Seq2Seq
    tokenizer: Tokenizer
    arrays: dict[str, Tensor]
    pairs: list[Pair]
    longest: int

    def written(self, batch: int = 64) -> list[list[int]]:
        """Greedy answers, without the end token."""
        c, found = self.model.config, []
        device = self.model.embed.weight.device
        for x in self.arrays["x"].long().split(batch):
            x = x[:, : int((x != c.pad).any(0).sum())].to(device)
            decoder = self.model.decoder(x, x != c.pad)
            begin = torch.full((len(x), 1), c.start, device=device)
            found += generate(decoder, begin, self.longest, stop=[c.end])
        return [[token for token in row if token not in (c.end, c.pad)] for row in found]

    def scores(self) -> dict[str, float]:
        """Exact match of the text, and BLEU where sacrebleu is installed."""
        answers, right = [self.tokenizer.decode(row) for row in self.written()], [y for _, y in self.pairs]
        found = {"exact_text": exact_match(answers, right)}
        return found | ({"bleu": bleu(answers, right).score} if bleu_is_there() else {})

    def exhibits(self) -> list[Exhibit]:
        """Answers, scores, and the errors by position."""
        rows = self.written()
        answers, right = [self.tokenizer.decode(row) for row in rows], [y for _, y in self.pairs]
        shown = [{"prompt": f"{x}  ->  ", "text": f"{a}" + ("" if a == y else f"   (right: {y})")}
                 for (x, y), a in zip(self.pairs[:SHOWN], answers, strict=False)]  # fmt: skip
        facts = [["exact match", round(exact_match(answers, right), 4)]]
        note = "Greedy answers on validation pairs."
        if bleu_is_there():
            score = bleu(answers, right)
            facts.append(["BLEU", round(score.score, 2)])
            note += f" BLEU: {score.signature}"
        return [
            Exhibit("text", "Answers", shown),
            Exhibit("table", "Text scores", {"columns": ["score", "value"], "rows": facts}, note),
            self.exposure(rows),
            self.by_length(answers, right),
            *self.alignment(),
        ]

    def alignment(self) -> list[Exhibit]:
        """Where the words of one target look in their source: the last block, the mean of its heads."""
        if not isinstance(self.model, Transformer):
            return []
        c, device = self.model.config, self.model.embed.weight.device
        x, y = (self.arrays[name][:1].long() for name in ("x", "y"))
        x, y = x[x != c.pad][None], y[y != c.pad][None]
        weights = self.model.alignment(x.to(device), shift_right(y, c.start).to(device))[-1, 0].mean(0).cpu()
        names = {
            side: [self.tokenizer.decode([token]) for token in row[0].tolist()] for side, row in (("x", x), ("y", y))
        }
        content = {"values": weights.tolist(), "rows": names["y"], "columns": names["x"],
                   "row_label": "written", "column_label": "source"}  # fmt: skip
        return [Exhibit("heatmap", "Alignment", content, "Attention of each written token to the source.")]

    def by_length(self, answers: list[str], right: list[str]) -> Exhibit:
        """The share of exact answers, and of words that are right, for sources of each length."""
        length = (self.arrays["x"] != self.model.config.pad).sum(1)
        exact = torch.tensor([a.split() == y.split() for a, y in zip(answers, right, strict=True)]).float()
        near = torch.tensor([overlap(a.split(), y.split()) for a, y in zip(answers, right, strict=True)])
        groups = [rows for rows in length.argsort(stable=True).tensor_split(GROUPS) if len(rows)]
        lines = {"exact": exact, "right words": near}
        content = {
            "x": [float(length[rows].float().mean()) for rows in groups],
            "y": {name: [float(values[rows].mean()) for rows in groups] for name, values in lines.items()},
            "x_label": "tokens of the source",
            "y_label": "share",
        }
        return Exhibit("curve", "By length", content, "A fixed context loses long sources; attention keeps them.")

    @torch.no_grad()
    def exposure(self, rows: list[list[int]]) -> Exhibit:
        """How errors grow along the text when the model reads its own words instead of the true ones."""
        c, x, y = self.model.config, self.arrays["x"].long(), self.arrays["y"].long()
        device = self.model.embed.weight.device
        pieces = zip(x.to(device).split(64), y.to(device).split(64), strict=True)
        forced = torch.cat([self.model(a, shift_right(b, c.start), a != c.pad).argmax(-1).cpu() for a, b in pieces])
        free = as_rows([[*row, c.end] for row in rows], y.shape[1], c.pad)
        enough = (y != c.pad).sum(0) >= 20
        lines = {"reading the true words": forced, "reading its own": free}
        errors = {name: error_by_position(found, y, c.pad)[enough].tolist() for name, found in lines.items()}
        places = torch.arange(1, y.shape[1] + 1)[enough].tolist()
        content = {"x": places, "y": errors, "x_label": "position in the target", "y_label": "share of wrong tokens"}
        return Exhibit("curve", "Exposure bias", content, "The gap is what reading its own words costs.")
