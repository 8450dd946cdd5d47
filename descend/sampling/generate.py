"""Autoregressive generation: read the prompt at once, then choose, append, repeat.

    y_1 ~ p(· | prompt),   y_{i+1} ~ p(· | prompt, y_1 … y_i)        until a stop token or a length

    prompt ─ start ─▶ z_1 ─ choose ─▶ y_1 ─ step ─▶ z_2 ─ choose ─▶ y_2 ─ …

Greedy search chooses y_i = argmax_y p(y | …) each time: deterministic, and not the most probable sequence (in the
books' tree it finds "nice woman" with 0.20 and misses "dog has" with 0.36; `descend.sampling.beam` finds that).

Prompts may have different lengths; they are padded on the left, so that all of them end at the same place.

Systems: autoregressive-generation
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import torch
from torch import Tensor

from descend.sampling.decoder import Decoder, Prompts, begin, pad_left
from descend.sampling.filters import GREEDY, TokenSampler

ENDED = -1
"""What `stream` yields for a row that has met its stop token before."""


def generate(
    decoder: Decoder,
    prompts: Prompts,
    tokens: int = 64,
    sampler: TokenSampler = GREEDY,
    seed: int = 0,
    stop: Collection[int] = (),
) -> list[list[int]]:
    """The new tokens of each prompt: at most `tokens` of them, the last being a stop token if one was met."""
    written = torch.stack(list(stream(decoder, prompts, tokens, sampler, seed, stop)), dim=1)
    return [row[row != ENDED].tolist() for row in written]


def stream(
    decoder: Decoder,
    prompts: Prompts,
    tokens: int = 64,
    sampler: TokenSampler = GREEDY,
    seed: int = 0,
    stop: Collection[int] = (),
) -> Iterator[Tensor]:
    """The same tokens while they come: one tensor (b,) per step, `ENDED` for the rows that are done."""
    logits = begin(decoder, prompts, tokens)
    generator = torch.Generator(logits.device).manual_seed(seed)
    stops = torch.tensor(sorted(stop), dtype=torch.long, device=logits.device)
    ended = torch.zeros(len(logits), dtype=torch.bool, device=logits.device)
    seen = seen_in(prompts, logits) if sampler.repetition != 1 else None
    for left in reversed(range(tokens)):
        y = sampler.draw(logits, generator, seen)
        if seen is not None:
            seen = seen.scatter(1, y[:, None], True)
        if stop:
            y = y.masked_fill(ended, ENDED)
            ended = ended | torch.isin(y, stops)
        yield y
        if not left or (stop and ended.all()):
            return
        logits = decoder.step(y.clamp(min=0))  # a row that has ended reads some token, and nobody looks


def seen_in(prompts: Prompts, logits: Tensor) -> Tensor:
    """(b, v): which tokens each prompt has; its padding does not count."""
    rows, pad = pad_left(prompts)
    real = torch.arange(rows.shape[1], device=rows.device) >= pad[:, None]
    counts = torch.zeros(logits.shape, dtype=torch.long, device=rows.device).scatter_add(1, rows.long(), real.long())
    return (counts > 0).to(logits.device)
