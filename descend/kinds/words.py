"""Word vectors learned from a text: skip-gram, CBOW and GloVe, with a map of the words in the report.

The text is made lower case and cut into words; words that are rarer than --data.least are left out, as if they were not
there. The vocabulary is saved as tokenizer.json, so that a folder of vectors knows its words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from descend.contracts import Batch, Stream
from descend.data.streams.arrays import Drawn, InOrder, Shuffled, generator
from descend.data.streams.shards import process
from descend.data.text.contexts import Counts, Draw, WithNoise, cooccurrence, noise, pairs, subsample, triples, windows
from descend.data.text.plain import Text
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.recipe import Judged, Recipe, describe_batch, fit_batch, micro_batch
from descend.models.word_vectors import CBOW, GloVe, GloVeTriples, SkipGram, WordVectorsConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear
from descend.ranges import Count, Depth, Few, Fraction, NonNegative
from descend.tasks.classify import Classify
from descend.tasks.word_vectors import LogCounts, LogRatios, NegativeSampling
from descend.text.tokenizer import Tokenizer
from descend.text.vocabulary import Vocabulary, words
from descend.views.words import show_words

VALID = 1  # key of the random numbers that choose what validates
Arrays = dict[str, Tensor]


@dataclass(frozen=True)
class NearWords:
    """Where the text comes from, and the context window."""

    path: str = ""
    """A UTF-8 text file; empty: the Python documentation."""
    least: Count = 5
    """Minimum count of a word."""
    window: Depth = 5
    """Words to each side that count as context."""
    subsample: NonNegative = 1e-3
    """Frequency above which words are thinned out; 0: none."""
    valid: Fraction = 0.05
    """Share used for validation: the end of the text, or for GloVe cells of the table."""

    def read(self) -> tuple[Vocabulary, Tensor]:
        """The vocabulary, and the known words of the text as numbers."""
        found = words(Text(path=self.path).read().lower())
        vocabulary = Vocabulary.learn(found, least=self.least)
        ids = vocabulary.encode(found)
        return vocabulary, ids[ids != vocabulary.unknown]


@dataclass(frozen=True)
class Noise:
    """Noise words for negative sampling."""

    negatives: Few = 5
    """Noise words for each pair."""
    power: NonNegative = 0.75
    """Noise follows frequency to this power; 0: uniform."""
    words: Literal["any", "outside"] = "any"
    """What may be noise: any word (word2vec), or only those outside the window (VOM)."""


Method = Literal["negative-sampling", "softmax", "cbow", "cbow-negative-sampling", "glove", "glove-triples"]


@dataclass(frozen=True)
class LearnWords(Recipe):
    """Word vectors by one of six methods."""

    model: WordVectorsConfig = field(default_factory=WordVectorsConfig)
    data: NearWords = field(default_factory=NearWords)
    optim: Any = field(default_factory=Adam)
    schedule: Any = field(default_factory=Linear)
    method: Method = "negative-sampling"
    noise: Noise = field(default_factory=Noise)
    package: ClassVar[str] = "python"

    def build(self) -> Parts:
        loop, data = self.loop, self.data
        vocabulary, ids = data.read()
        cut = round(len(ids) * (1 - data.valid))
        if min(cut, len(ids) - cut) <= 2 * data.window:
            raise Mistake(
                f"{data.path or 'the text'}: {len(ids)} words are too few; give more text or a smaller --data.least"
            )
        config = replace(self.model, vocab=vocabulary.size)
        torch.manual_seed(loop.seed)
        build = self.from_counts if self.method.startswith("glove") else self.from_windows
        model, task, stream, valid, examples = build(config, ids, cut)
        return Parts(
            task=task,
            model=model,
            stream=stream,
            valid=valid,
            optims={"model": self.optim},
            unit="examples",
            units_per_batch=fit_batch(loop, examples),
            facts={
                "data": data.path or "the Python documentation",
                "words in the text": len(ids),
                "vocabulary": len(vocabulary.words),
                "examples of an epoch": examples,
                **describe_batch(loop, fit_batch(loop, examples)),
            },
            save_extra=Tokenizer.of_words(vocabulary.words).save,
            exhibits=lambda: show_words(
                model.vectors().cpu(), vocabulary, torch.bincount(ids, minlength=vocabulary.size)
            ),
        )

    def from_windows(self, config: WordVectorsConfig, ids: Tensor, cut: int) -> tuple[Any, Any, Stream, InOrder, int]:
        """Skip-gram and CBOW: the text's beginning trains, its end validates."""
        loop, data = self.loop, self.data
        thin = subsample(ids[:cut], config.vocab, data.subsample, generator(loop.seed))
        model: Any = CBOW(config) if self.method.startswith("cbow") else SkipGram(config)
        train, valid = (self.examples(part) for part in (thin, ids[cut:]))
        micro = micro_batch(loop, fit_batch(loop, len(train["x"])))
        if not self.method.endswith("negative-sampling"):
            stream = Shuffled(train, micro, loop.seed, *process())
            return model, Classify(model), stream, InOrder(valid), len(train["x"])
        if self.noise.negatives < 1:
            raise Mistake(f"--noise.negatives {self.noise.negatives}: negative sampling needs at least 1 noise word")
        draw = self.draw_noise(ids, config.vocab)
        valid = self.add_noise(valid, draw)
        source = Shuffled(train, micro, loop.seed, *process(), chance=self.noise.negatives)
        return model, NegativeSampling(model), WithNoise(source, draw), InOrder(valid), len(train["x"])

    def draw_noise(self, ids: Tensor, vocab: int) -> Draw:
        """Noise words as frequent as in the training part of a text."""
        cut = round(len(ids) * (1 - self.data.valid))
        return noise(torch.bincount(ids[:cut], minlength=vocab), self.noise.power)

    def add_noise(self, found: Arrays, draw: Draw) -> Arrays:
        """Each right word with noise words, the same ones each time."""
        u = 2 * torch.rand(len(found["x"]), self.noise.negatives, generator=generator(VALID)) - 1
        near = found.get("near")
        rest = {name: x for name, x in found.items() if name != "near"}
        return {**rest, "words": torch.cat([found["y"][:, None], draw(u, near)], dim=1)}

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """Another text, in the words that the model knows: how well they tell their neighbours. Noise words are as
        frequent as in the training text."""
        if self.method.startswith("glove"):
            raise Mistake(
                f"--data.path {path}: GloVe is fitted to the counts of its own text; it has no score on another; "
                "descend predict RUN WORD shows the neighbours of a word"
            )
        known = read_vocabulary(Tokenizer.load(folder))
        ids = known.encode(words(Text(path=path).read().lower()))
        ids = ids[ids != known.unknown]
        if len(ids) <= 2 * self.data.window:
            raise Mistake(f"--data.path {path}: it has {len(ids)} words that the model knows; give more text")
        found = self.examples(ids)
        if not self.method.endswith("negative-sampling"):
            return Judged(Classify(model), InOrder(found))
        vocabulary, before = self.data.read()
        if vocabulary != known:
            raise Mistake(f"{self.data.path or 'the training text'} has other words than the model: was it changed?")
        return Judged(NegativeSampling(model), InOrder(self.add_noise(found, self.draw_noise(before, known.size))))

    def examples(self, words: Tensor) -> Arrays:
        """x predicts y: a centre each of its neighbours, or for CBOW all neighbours their centre; `near`: no noise."""
        near = windows(words, self.data.window)
        if self.method.startswith("cbow"):
            found, near = {"x": near, "y": words}, torch.cat([near, words[:, None]], dim=1)
        else:
            found = dict(zip("xy", pairs(words, self.data.window), strict=True))
            near = near.repeat_interleave((near >= 0).sum(1), dim=0)
        outside = self.method.endswith("negative-sampling") and self.noise.words == "outside"
        return {**found, "near": near} if outside else found

    def from_counts(self, config: WordVectorsConfig, ids: Tensor, cut: int) -> tuple[Any, Any, Stream, InOrder, int]:
        """GloVe: a share of the cells of the table of counts validates."""
        loop = self.loop
        x = cooccurrence(ids, self.data.window, config.vocab)
        held = torch.rand(len(x.x), generator=generator(VALID)) < self.data.valid
        train, valid = (Counts(x.i[part], x.g[part], x.x[part], x.vocab) for part in (~held, held))
        micro = micro_batch(loop, fit_batch(loop, len(train.x)))
        if self.method == "glove":
            model: Any = GloVe(config)
            stream: Stream = Shuffled(as_cells(train), micro, loop.seed, *process())
            return model, LogCounts(model), stream, InOrder(as_cells(valid)), len(train.x)
        model = GloVeTriples(config)
        stream = Drawn(draw_triples(train), micro, loop.seed, *process())
        drawn = InOrder(triples(valid, generator(VALID), len(valid.x)))
        return model, LogRatios(model), stream, drawn, len(train.x)


def read_vocabulary(tokenizer: Tokenizer) -> Vocabulary:
    """The words that a folder of vectors knows."""
    unknown = tokenizer.special("unk_token")
    return Vocabulary(tuple(str(tokenizer.inner.id_to_token(i)) for i in range(tokenizer.vocab) if i != unknown))


def as_cells(counts: Counts) -> Batch:
    return {"i": counts.i, "j": counts.g, "x": counts.x}


def draw_triples(counts: Counts) -> Callable[[torch.Generator, int], Arrays]:
    return lambda random, n: triples(counts, random, n)
