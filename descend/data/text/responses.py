"""Texts that a language model writes as it is now: what it learns from when its actions are tokens.

    prompt x ~ the prompts,   y_t ~ π(· | x, y_<t) until a stop token or the longest length

As with rollouts in an environment, a batch belongs to the policy that wrote it, so it is written when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import Tensor

from descend.sampling.decoder import Decoder
from descend.sampling.filters import TokenSampler
from descend.sampling.generate import generate
from descend.seeds import generator

OWN = TokenSampler()  # the model's own distribution


def respond(
    decoder: Decoder,
    prompts: Sequence[Sequence[int]],
    longest: int,
    seed: int,
    stop: Collection[int] = (),
    sampler: TokenSampler = OWN,
) -> dict[str, Tensor]:
    """`tokens` (b, t): each prompt and what was written after it, zeros after its end; `written` (b, t) says which."""
    prompts = [list(prompt) for prompt in prompts]
    answers = generate(decoder, prompts, longest, sampler, seed, stop)
    rows = [[*prompt, *answer] for prompt, answer in zip(prompts, answers, strict=True)]
    tokens = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
    written = torch.zeros_like(tokens, dtype=torch.bool)
    for i, (prompt, row) in enumerate(zip(prompts, rows, strict=True)):
        tokens[i, : len(row)], written[i, len(prompt) : len(row)] = torch.tensor(row), True
    return {"tokens": tokens, "written": written}


class Responses:
    """A stream of batches of texts, each on a prompt that is drawn anew.

    `write` maps prompts and a seed to tokens and `written`; `look_back` is given a whole batch before it is cut into
    slices, and returns what is learned from. Random numbers are a function of (seed, draw), so they need no state.
    """

    def __init__(
        self,
        prompts: Sequence[Sequence[int]],
        write: Callable[[Sequence[Sequence[int]], int], dict[str, Tensor]],
        look_back: Callable[[dict[str, Tensor]], dict[str, Tensor]],
        batch: int,
        seed: int,
    ):
        self.prompts, self.write, self.look_back, self.batch, self.seed = prompts, write, look_back, batch, seed
        self.draw = 0

    @torch.no_grad()
    def __next__(self) -> dict[str, Tensor]:
        chance = generator(self.seed, self.draw)
        rows = torch.randint(len(self.prompts), (self.batch,), generator=chance).tolist()
        texts = self.write([self.prompts[i] for i in rows], int(torch.randint(2**31, (), generator=chance)))
        batch = {**self.look_back(texts), "ids": torch.tensor(rows)}
        self.draw += 1
        return batch

    def state_dict(self) -> dict[str, Any]:
        return {"draw": self.draw}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.draw = state["draw"]
