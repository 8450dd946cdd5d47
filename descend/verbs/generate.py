"""descend generate: let a trained language model write on from a prompt."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from descend.errors import Mistake
from descend.models import load
from descend.models.gpt2 import GPT2
from descend.sampling.filters import Sampler
from descend.sampling.generate import stream
from descend.text.tokenizer import Tokenizer


def generate(
    run: str | Path,
    prompt: str,
    tokens: int = 100,
    temperature: float = 0.8,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
) -> str:
    """The prompt and what the model writes after it; temperature 0 takes the likeliest token each time."""
    return "".join(pieces(run, prompt, tokens, Sampler(temperature, top_k, top_p), seed))


def pieces(run: str | Path, prompt: str, tokens: int, sampler: Sampler, seed: int) -> Iterator[str]:
    """The text as it comes: the prompt, then a piece a token (a character may need several)."""
    folder = Path(run)
    model = load(folder)
    if not isinstance(model, GPT2):
        raise Mistake(f"{folder} holds a {type(model).__name__}, which is not a language model")
    inside = folder / "checkpoints" / "last"
    tokenizer = Tokenizer.load(inside if inside.is_dir() else folder)
    ids = tokenizer.encode(prompt) or ([tokenizer.end] if tokenizer.end is not None else [])
    yield prompt
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
        seed: another seed writes another text.

    Examples:
        descend generate runs/demo "The for statement"
        descend generate runs/demo "def " --tokens 200 --temperature 0.7 --top-k 40 --seed 3
    """
    for piece in pieces(run, prompt, tokens, Sampler(temperature, top_k, top_p), seed):
        sys.stdout.write(piece)
        sys.stdout.flush()
    print()
