"""descend generate: let a trained model write: on from a prompt, or the answer to a source text (translation)."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch

from descend.errors import Mistake
from descend.models import load
from descend.sampling.beam import beam_search
from descend.sampling.filters import Sampler
from descend.sampling.generate import stream
from descend.sampling.stop import until
from descend.text.tokenizer import Tokenizer


def generate(
    run: str | Path,
    prompt: str,
    tokens: int = 100,
    temperature: float = 0.8,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition: float = 1.0,
    stop: tuple[str, ...] = (),
    seed: int = 0,
    beams: int = 1,
) -> str:
    """The prompt and what the model writes after it; temperature 0 takes the likeliest token each time.

    A model that reads a source text and writes another (T5, the Transformer, Seq2Seq) gives its answer alone. With
    `beams` above 1 it is the best text that beam search finds, and nothing is drawn by chance.
    """
    writer = Writer.open(run, prompt)
    sampler = Sampler(temperature, top_k, top_p, min_p, repetition)
    written = writer.searched(tokens, beams) if beams != 1 else writer.pieces(tokens, sampler, seed)
    return writer.echo + "".join(until(written, stop))


@dataclass(frozen=True)
class Writer:
    """A decoder that stands before its first new token."""

    decoder: Any
    tokenizer: Tokenizer
    ids: list[int]
    end: tuple[int, ...]
    echo: str
    """The prompt where the text goes on from it; nothing where the text is an answer."""
    unseen: tuple[int, ...] = ()
    """Tokens that are no text: padding."""

    @classmethod
    def open(cls, run: str | Path, prompt: str) -> Self:
        """From a run's folder or a model folder."""
        folder = Path(run)
        model: Any = load(folder)
        if not callable(getattr(model, "decoder", None)):
            raise Mistake(f"{folder} holds a {type(model).__name__}, which does not write text")
        inside = folder / "checkpoints" / "last"
        tokenizer = Tokenizer.load(inside if inside.is_dir() else folder)
        tokenizer.check_fits(model.config.vocab)
        end = () if tokenizer.end is None else (tokenizer.end,)
        ids = tokenizer.encode(prompt)
        if not inspect.signature(model.decoder).parameters:
            return cls(model.decoder(), tokenizer, ids or list(end), end, prompt)
        if not ids:
            raise Mistake(f"a {type(model).__name__} answers a source text: give one after the folder")
        x = torch.tensor([[*ids, *end]])
        with torch.inference_mode():
            decoder = model.decoder(x, torch.ones_like(x, dtype=torch.bool))
        return cls(decoder, tokenizer, [model.config.start], (model.config.end,), "", (model.config.pad,))

    def pieces(self, tokens: int, sampler: Sampler, seed: int) -> Iterator[str]:
        """What the model writes, as it comes: a piece a token (a character may need several)."""
        written: list[int] = []
        shown = ""
        with torch.inference_mode():
            for token in stream(self.decoder, [self.ids], tokens, sampler, seed, self.end):
                if int(token) in self.end:
                    return
                if int(token) in self.unseen:
                    continue
                written.append(int(token))
                text = self.tokenizer.decode(written)
                if not text.endswith("\ufffd"):  # wait until a character is whole
                    yield text.removeprefix(shown)
                    shown = text

    def searched(self, tokens: int, beams: int) -> Iterator[str]:
        """The best hypothesis of beam search, in one piece."""
        with torch.inference_mode():
            best = beam_search(self.decoder, [self.ids], beams, tokens, stop=self.end)[0][0]
        yield self.tokenizer.decode([token for token in best.tokens if token not in self.end + self.unseen])


def command(
    run: str,
    prompt: str = "",
    /,
    *,
    tokens: int = 100,
    temperature: float = 0.8,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition: float = 1.0,
    stop: tuple[str, ...] = (),
    seed: int = 0,
    beams: int = 1,
) -> None:
    """Write on from a prompt, or answer a source text, with a run or any model folder that has a tokenizer.json.

    Args:
        run: a run's folder, or a model folder.
        prompt: the text to begin with.
        tokens: how many tokens to write.
        temperature: 0 takes the likeliest token, 1 samples as the model believes.
        top_k: only the k likeliest tokens; 0 for all.
        top_p: only the likeliest tokens that together exceed this mass; 1 for all.
        min_p: only tokens at least this share as likely as the likeliest; 0 for all.
        repetition: makes tokens that the text already has less likely; 1 for no penalty, 1.2 is usual.
        stop: end before the first of these texts.
        seed: another seed writes another text.
        beams: above 1: the best text that beam search with so many hypotheses finds; the flags of chance do not count.

    Examples:
        descend generate runs/demo "The for statement"
        descend generate runs/demo "def " --tokens 200 --temperature 0.7 --top-k 40 --seed 3
        descend generate runs/demo "def " --min-p 0.05 --repetition 1.2 --stop "def " "class "
        descend generate runs/translate "Ein Mann schläft." --beams 4
    """
    writer, sampler = Writer.open(run, prompt), Sampler(temperature, top_k, top_p, min_p, repetition)
    found = writer.searched(tokens, beams) if beams != 1 else writer.pieces(tokens, sampler, seed)
    waiting = writer.echo  # a mistake is told before anything is written
    for piece in until(found, stop):
        sys.stdout.write(waiting + piece)
        sys.stdout.flush()
        waiting = ""
    print(waiting)
