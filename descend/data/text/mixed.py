"""Several texts by shares, stage by stage: what a language model learns from, and how often it sees each.

    --data.sources web.txt books/ code.jsonl     three sources, named by their files: web, books, code
    --data.shares 67,15,18 20,40,40              of the windows, in the first stage and in the second
    --data.until 0.8                             the first stage ends after 0.8 of the training
    --data.temperature 2                         without shares: by size, evened out (`data.streams.mixture`)

One tokenizer is learned from all of them, and each is split by itself, so that the loss of each is told.

Systems: data-mixture-sampler
"""

from __future__ import annotations

import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from descend.data.reading import show
from descend.data.streams.mixture import Stage, check_shares, share_by_size
from descend.data.text.plain import Text, count_windows
from descend.errors import Mistake
from descend.ranges import Between, Fraction, Length, Positive
from descend.text.tokenizer import Tokenizer

EMBEDDED = ("documentation", "library")
MODULES = ("ast", "collections/__init__", "configparser", "csv", "dataclasses", "difflib", "enum", "heapq", "inspect")


class MixedText(NamedTuple):
    """A tokenizer, and the tokens of each source, for training and for validation."""

    tokenizer: Tokenizer
    train: dict[str, Tensor]
    valid: dict[str, Tensor]
    bytes_per_token: float


@dataclass(frozen=True)
class TextMixture:
    """The sources, and their shares in each stage."""

    sources: tuple[str, ...] = ()
    """Texts, .jsonl files or folders of them; empty: the Python documentation, and modules of its library."""
    shares: tuple[str, ...] = ()
    """Shares of the sources for each stage, 67,33 20,80; each sums to 1 or 100. Empty: by size and temperature."""
    until: tuple[Between, ...] = ()
    """Part of the training after which each stage but the last ends; empty: stages of equal length."""
    temperature: Positive = 1.0
    """Without shares: 1 takes the sources as they lie, more evens them out."""
    tokenizer: str = "bpe"
    """bpe (byte-level), characters, plain-bpe, unigram, wordpiece or words."""
    vocab: Length = 512
    """Maximum vocabulary size."""
    valid: Fraction = 0.1
    """Share of each text used for validation: its end."""

    def read(self) -> dict[str, str]:
        """The texts by their names."""
        if not self.sources:
            return {"documentation": Text().read(), "library": read_library()}
        names = [Path(path).name.partition(".")[0] for path in self.sources]
        twice = next((name for name in names if names.count(name) > 1), "")
        if len(names) < 2 or twice:
            told = f"two are called {twice!r}; rename one" if twice else "a mixture needs two sources or more"
            raise Mistake(f"--data.sources: {told}")
        return {name: Text(path=path).read() for name, path in zip(names, self.sources, strict=True)}

    def open(self, context: int) -> MixedText:
        """The tokens, by one tokenizer."""
        if not 0 < self.valid < 1:
            raise Mistake(f"--data.valid {self.valid}: the validation share must be between 0 and 1")
        texts = self.read()
        cut = Text(valid=self.valid, tokenizer=self.tokenizer, vocab=self.vocab)
        begun = {name: text[: round(len(text) * (1 - self.valid))] for name, text in texts.items()}
        tokenizer = Tokenizer.learn("\n\n".join(begun.values()), self.tokenizer, self.vocab)
        train, valid, held_out = {}, {}, 0
        for name, text in texts.items():
            train[name], valid[name] = Text(show(name), valid=cut.valid).split(text, tokenizer, context)
            held_out += len(text[len(begun[name]) :].encode())
        return MixedText(tokenizer, train, valid, held_out / sum(map(len, valid.values())))

    def stages(self, train: dict[str, Tensor], context: int, examples: int) -> list[Stage]:
        """The shares of each stage of a training of so many examples."""
        names = list(train)
        sizes = {name: float(count_windows(len(tokens), context)) for name, tokens in train.items()}
        if not self.shares:
            return [Stage(share_by_size(sizes, self.temperature))]
        found = [dict(zip(names, read_shares(text, names), strict=True)) for text in self.shares]
        for shares in found:
            check_shares(shares, names)
        count = len(found)
        until = self.until or tuple((k + 1) / count for k in range(count - 1))
        if len(until) != count - 1:
            raise Mistake(f"--data.until: {len(until)} ends for {count} stages; the last one needs none")
        ends = [round(part * examples) for part in until]
        return [Stage(shares, end) for shares, end in zip(found, [*ends, 0], strict=True)]


def read_shares(text: str, names: Sequence[str]) -> list[float]:
    """The numbers of "67,33"."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        raise Mistake(f"--data.shares {text}: numbers with commas between them, e.g. 67,33") from None
    if len(found) != len(names):
        told = ", ".join(names)
        raise Mistake(f"--data.shares {text}: {len(found)} shares for {len(names)} sources ({told})")
    return found


def read_library() -> str:
    """Some modules of Python's library."""
    root = Path(sysconfig.get_paths()["stdlib"])
    return "\n\n".join((root / f"{name}.py").read_text(encoding="utf-8") for name in MODULES)
