"""Word vectors learned from a text: skip-gram, CBOW and GloVe, with a map of the words in the report.

The text is made lower case and cut into words; words that are rarer than --data.least are left out, as if they were not
there. The vocabulary is saved as tokenizer.json, so that a folder of vectors knows its words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from descend.data.streams.arrays import Drawn, InOrder, Shuffled, generator
from descend.data.streams.shards import process
from descend.data.text.contexts import Counts, WithNoise, cooccurrence, noise, pairs, subsampled, triples, windows
from descend.data.text.plain import Text
from descend.engine.protocol import Batch, Exhibit, Parts, Stream
from descend.errors import Mistake
from descend.kinds.recipe import Recipe, micro_batch
from descend.metrics.geometry import anisotropy, centred, flat_map, without_top
from descend.metrics.word_vectors import Words
from descend.models.word_vectors import CBOW, GloVe, GloVeTriples, SkipGram, WordVectorsConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear
from descend.tasks.classify import Classify
from descend.tasks.word_vectors import LogCounts, LogRatios, NegativeSampling
from descend.text.standardize import STOP_WORDS
from descend.text.tokenizer import Tokenizer
from descend.text.vocabulary import Vocabulary, words

VALID = 1  # key of the random numbers that choose what validates
MAPPED, ASKED, NEAR = 300, 16, 6  # words on the map, words with a line of neighbours, neighbours of each
Arrays = dict[str, Tensor]


@dataclass(frozen=True)
class NearWords:
    """Where the text comes from, and what counts as near."""

    path: str = ""
    """A UTF-8 text file; empty: the Python documentation."""
    least: int = 5
    """Times that a word must occur."""
    window: int = 5
    """Words to each side that are near."""
    subsample: float = 1e-3
    """Frequency above which words are thinned out; 0: none."""
    valid: float = 0.05
    """Share that validates: the end of the text, or for GloVe cells of the table."""

    def read(self) -> tuple[Vocabulary, Tensor]:
        """The vocabulary, and the known words of the text as numbers."""
        found = words(Text(path=self.path).read().lower())
        vocabulary = Vocabulary.learn(found, least=self.least)
        ids = vocabulary.encode(found)
        return vocabulary, ids[ids != vocabulary.unknown]


@dataclass(frozen=True)
class Noise:
    """Words that are no neighbours."""

    negatives: int = 5
    """Noise words for each pair."""
    power: float = 0.75
    """Noise follows frequency to this power; 0: uniform."""


Method = Literal["negative-sampling", "softmax", "cbow", "glove", "glove-triples"]


@dataclass(frozen=True)
class LearnWords(Recipe):
    """Word vectors by one of five methods."""

    model: WordVectorsConfig = field(default_factory=WordVectorsConfig)
    data: NearWords = field(default_factory=NearWords)
    optim: Any = field(default_factory=Adam)
    schedule: Any = field(default_factory=Linear)
    method: Method = "negative-sampling"
    noise: Noise = field(default_factory=Noise)

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
            units_per_batch=loop.batch,
            facts={
                "data": data.path or "the Python documentation",
                "words in the text": len(ids),
                "vocabulary": len(vocabulary.words),
                "examples of an epoch": examples,
            },
            save_extra=Tokenizer.of_words(vocabulary.words).save,
            exhibits=lambda: look(model.vectors().cpu(), vocabulary, torch.bincount(ids, minlength=vocabulary.size)),
        )

    def from_windows(self, config: WordVectorsConfig, ids: Tensor, cut: int) -> tuple[Any, Any, Stream, InOrder, int]:
        """Skip-gram and CBOW: the text's beginning trains, its end validates."""
        loop, data = self.loop, self.data
        micro = micro_batch(loop, loop.batch)
        thin = subsampled(ids[:cut], config.vocab, data.subsample, generator(loop.seed))
        if self.method == "cbow":
            model: Any = CBOW(config)
            parts = [{"x": windows(part, data.window), "y": part} for part in (thin, ids[cut:])]
            return (
                model,
                Classify(model),
                Shuffled(parts[0], micro, loop.seed, *process()),
                InOrder(parts[1]),
                len(thin),
            )
        model = SkipGram(config)
        train, valid = (dict(zip("xy", pairs(part, data.window), strict=True)) for part in (thin, ids[cut:]))
        if self.method == "softmax":
            stream: Stream = Shuffled(train, micro, loop.seed, *process())
            return model, Classify(model), stream, InOrder(valid), len(train["x"])
        if self.noise.negatives < 1:
            raise Mistake(f"--noise.negatives {self.noise.negatives}: negative sampling needs at least 1 noise word")
        draw = noise(torch.bincount(ids[:cut], minlength=config.vocab), self.noise.power)
        u = 2 * torch.rand(len(valid["x"]), self.noise.negatives, generator=generator(VALID)) - 1
        valid["words"] = torch.cat([valid["y"][:, None], draw(u)], dim=1)
        source = Shuffled(train, micro, loop.seed, *process(), chance=self.noise.negatives)
        return model, NegativeSampling(model), WithNoise(source, draw), InOrder(valid), len(train["x"])

    def from_counts(self, config: WordVectorsConfig, ids: Tensor, cut: int) -> tuple[Any, Any, Stream, InOrder, int]:
        """GloVe: a share of the cells of the table of counts validates."""
        loop = self.loop
        micro = micro_batch(loop, loop.batch)
        x = cooccurrence(ids, self.data.window, config.vocab)
        held = torch.rand(len(x.x), generator=generator(VALID)) < self.data.valid
        train, valid = (Counts(x.i[part], x.g[part], x.x[part], x.vocab) for part in (~held, held))
        if self.method == "glove":
            model: Any = GloVe(config)
            stream: Stream = Shuffled(cells(train), micro, loop.seed, *process())
            return model, LogCounts(model), stream, InOrder(cells(valid)), len(train.x)
        model = GloVeTriples(config)
        stream = Drawn(drawn_from(train), micro, loop.seed, *process())
        drawn = InOrder(triples(valid, generator(VALID), len(valid.x)))
        return model, LogRatios(model), stream, drawn, len(train.x)


def cells(counts: Counts) -> Batch:
    return {"i": counts.i, "j": counts.g, "x": counts.x}


def drawn_from(counts: Counts) -> Callable[[torch.Generator, int], Arrays]:
    return lambda random, n: triples(counts, random, n)


def look(e: Tensor, vocabulary: Vocabulary, counts: Tensor) -> list[Exhibit]:
    """A map of the frequent words, neighbours of some of them, and the shape of the cloud."""
    known = list(vocabulary.words)
    asked = Words(known, e[: len(known)])
    telling = [i for i in counts.argsort(descending=True).tolist() if i < len(known) and tells(known[i])]
    shown = telling[:MAPPED]
    at = flat_map(centred(e[shown]))
    lines = [[known[i], ", ".join(f"{word} {c:.2f}" for word, c in asked.near(known[i], NEAR))] for i in shown[:ASKED]]
    kinds = {"as learned": e[shown], "centred": centred(e[shown]), "without 2 components": without_top(e[shown], 2)}
    shape = [[name, float(anisotropy(part))] for name, part in kinds.items()]
    return [
        Exhibit(
            "words",
            "A map of the words",
            {"words": [known[i] for i in shown], "at": at.tolist()},
            f"The {len(shown)} most frequent telling words, by the first two principal components.",
        ),
        Exhibit("table", "Nearest words", {"columns": ["word", "neighbours and cosines"], "rows": lines}),
        Exhibit(
            "table",
            "Shape of the cloud",
            {"columns": ["vectors", "mean cosine of two words"], "rows": shape},
            "0 is a round cloud, 1 a narrow cone.",
        ),
    ]


def tells(word: str) -> bool:
    """Whether a word says something by itself."""
    return len(word) > 2 and word not in STOP_WORDS and not word.isdigit()
