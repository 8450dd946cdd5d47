"""Writing: a language model continues a prompt; a model that reads a source (T5, the Transformer) answers it.

y_i ~ p(· | prompt, y_<i)        or        y_i ~ p(· | source, y_<i)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from descend.contracts import AnswersSource, HasDecoder
from descend.data.text.table import Wanted
from descend.errors import Mistake
from descend.inference.encoder import encodes_images, encodes_texts
from descend.inference.inputs import read_texts
from descend.inference.trained import Trained, load_trained
from descend.sampling.beam import beam_search
from descend.sampling.filters import TokenSampler
from descend.sampling.generate import stream
from descend.text.spelling import Spelling
from descend.text.tokenizer import Tokenizer

SOURCE = Wanted("source", "target")
LONGEST = 200  # tokens of an answer


@dataclass(frozen=True)
class Beginning:
    """A decoder that stands before its first new token."""

    decoder: Any
    ids: list[int]
    end: tuple[int, ...]
    silent: tuple[int, ...] = ()
    """Tokens that are not text: padding."""


@dataclass(frozen=True)
class Written:
    """A source and the model's answer to it."""

    input: str
    text: str
    record: Mapping[str, str]

    def as_json(self, top: int) -> dict[str, Any]:
        return {"input": self.input, "text": self.text}

    def as_rows(self) -> list[dict[str, Any]]:
        """The record and the answer."""
        return [{**self.record, "prediction": self.text}]

    def compare(self) -> list[tuple[str | float, str | float]]:
        """A text is not right or wrong: `descend evaluate` measures how near it is."""
        return []


@dataclass(frozen=True)
class Writer:
    """A model that writes, and its tokenizer."""

    trained: Trained
    tokenizer: Tokenizer
    takes = "a prompt"

    @classmethod
    def open(cls, run: str | Path, checkpoint: str | int = "best") -> Writer:
        """From a run or a model folder."""
        return cls.read(load_trained(run, checkpoint))

    @classmethod
    def read(cls, trained: Trained) -> Writer:
        """With the tokenizer beside the weights."""
        if not writes(trained):
            vectors = encodes_texts(trained) or encodes_images(trained)
            other = f"; it gives vectors: descend embed {trained.folder}" if vectors else ""
            raise Mistake(f"{trained.folder} holds a {trained.kind}, which does not write text{other}")
        tokenizer = Tokenizer.load(trained.folder)
        tokenizer.check_fits(trained.model.config.vocab)
        return cls(trained, tokenizer)

    @property
    def continues(self) -> bool:
        """Whether the text continues the prompt; else it answers it."""
        return not isinstance(self.trained.model, AnswersSource)

    def begin(self, prompt: str) -> Beginning:
        """Read the prompt."""
        model, ids = self.trained.model, self.tokenizer.encode(prompt)
        end = () if self.tokenizer.end is None else (self.tokenizer.end,)
        if self.continues:
            return Beginning(model.decoder(), ids or list(end), end)
        if not ids:
            raise Mistake(f"a {self.trained.kind} answers a source text: give one after the folder")
        source = torch.tensor([[*ids, *end]], device=self.trained.device)
        with torch.inference_mode():
            decoder = model.decoder(source, torch.ones_like(source, dtype=torch.bool))
        return Beginning(decoder, [model.config.start], (model.config.end,), (model.config.pad,))

    def write(self, prompt: str, tokens: int, sampler: TokenSampler, seed: int = 0) -> Iterator[str]:
        """What the model writes, as it comes: a piece a token (a character may need several)."""
        yield from self.write_from(self.begin(prompt), tokens, sampler, seed)

    def write_from(self, begun: Beginning, tokens: int, sampler: TokenSampler, seed: int = 0) -> Iterator[str]:
        """The same after any beginning."""
        spelling = Spelling(self.tokenizer)
        with torch.inference_mode():
            for token in stream(begun.decoder, [begun.ids], tokens, sampler, seed, begun.end):
                if int(token) in begun.end:
                    return
                if int(token) in begun.silent:
                    continue
                if piece := spelling.add(int(token)):
                    yield piece

    def predict(self, inputs: Sequence[str]) -> list[Written]:
        """The most likely answers to sources and files of sources (of pairs, the column `source` or the first)."""
        given = read_texts(inputs, SOURCE)
        greedy = TokenSampler(temperature=0)
        return [
            Written(text, "".join(self.write(text, LONGEST, greedy)), record)
            for text, record in zip(given.texts, given.records, strict=True)
        ]

    def search(self, prompt: str, tokens: int, beams: int) -> str:
        """The best hypothesis of beam search."""
        begun = self.begin(prompt)
        with torch.inference_mode():
            best = beam_search(begun.decoder, [begun.ids], beams, tokens, stop=begun.end)[0][0]
        return self.tokenizer.decode([token for token in best.tokens if token not in begun.end + begun.silent])


def writes(trained: Trained) -> bool:
    """Whether the model writes text."""
    return isinstance(trained.model, HasDecoder)
