"""Tokens that a language model writes: what a student learns from when it is taught by sequences.

    y ~ p_teacher(· | x_1 .. x_k)          x: k tokens from places of a text, drawn by the seed

The teacher goes on from many places at once, at a temperature; what it wrote lies end to end as a text of its own.

Systems: knowledge-distillation
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.contracts import HasDecoder
from descend.errors import Mistake
from descend.sampling.filters import TokenSampler
from descend.sampling.generate import generate
from descend.seeds import generator

ROWS = 64
PROMPT = 8


@torch.inference_mode()
def write_tokens(
    teacher: HasDecoder, text: Tensor, count: int, length: int, temperature: float = 1.0, seed: int = 0
) -> Tensor:
    """At least `count` tokens, in pieces of `length`; each begins with PROMPT tokens of `text`."""
    if length <= PROMPT or len(text) <= PROMPT:
        raise Mistake(f"pieces of {length} tokens leave no room to write after {PROMPT}; give a larger --model.context")
    random, sampler = generator(seed, 0), TokenSampler(temperature=temperature)
    parts: list[int] = []
    while len(parts) < count:
        starts = torch.randint(len(text) - PROMPT, (ROWS,), generator=random).tolist()
        prompts = [text[start : start + PROMPT].tolist() for start in starts]
        found = generate(teacher.decoder(), prompts, length - PROMPT, sampler, seed + len(parts))
        parts += [token for begun, more in zip(prompts, found, strict=True) for token in (*begun, *more)]
    return torch.tensor(parts, dtype=torch.int32)
