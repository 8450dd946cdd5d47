"""descend generate: let a trained language model write on from a prompt."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from descend.errors import Mistake
from descend.models import load
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
) -> str:
    """The prompt and what the model writes after it; temperature 0 takes the likeliest token each time."""
    sampler = Sampler(temperature, top_k, top_p, min_p, repetition)
    return prompt + "".join(until(pieces(run, prompt, tokens, sampler, seed), stop))


def pieces(run: str | Path, prompt: str, tokens: int, sampler: Sampler, seed: int) -> Iterator[str]:
    """What comes after the prompt, as it comes: a piece a token (a character may need several)."""
    folder = Path(run)
    model: Any = load(folder)
    if not callable(getattr(model, "decoder", None)) or inspect.signature(model.decoder).parameters:
        raise Mistake(f"{folder} holds a {type(model).__name__}, which is not a language model")
    inside = folder / "checkpoints" / "last"
    tokenizer = Tokenizer.load(inside if inside.is_dir() else folder)
    tokenizer.check_fits(model.config.vocab)
    ids = tokenizer.encode(prompt) or ([tokenizer.end] if tokenizer.end is not None else [])
    written: list[int] = []
    shown = ""
    stop = () if tokenizer.end is None else (tokenizer.end,)
    with torch.inference_mode():
        for token in stream(model.decoder(), [ids], tokens, sampler, seed, stop):
            if int(token) in stop:
                return
            written.append(int(token))
            text = tokenizer.decode(written)
            if not text.endswith("\ufffd"):  # wait until a character is whole
                yield text.removeprefix(shown)
                shown = text


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
) -> None:
    """Write on from a prompt, with a run or any model folder that has a tokenizer.json.

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

    Examples:
        descend generate runs/demo "The for statement"
        descend generate runs/demo "def " --tokens 200 --temperature 0.7 --top-k 40 --seed 3
        descend generate runs/demo "def " --min-p 0.05 --repetition 1.2 --stop "def " "class "
    """
    found = pieces(run, prompt, tokens, Sampler(temperature, top_k, top_p, min_p, repetition), seed)
    waiting = prompt  # a mistake is told before anything is written
    for piece in until(found, stop):
        sys.stdout.write(waiting + piece)
        sys.stdout.flush()
        waiting = ""
    print(waiting)
