"""Choices scored by what they are worth to a language model: which of them would it most likely write?

    s_c = log p(c | prompt) = Σ_i log p(c_i | prompt, c_<i)         the sum favours short choices
    s_c / |c|                                                       per token: log of the geometric mean

VOM 14.5.1 names "log-probability scoring of options"; which of the two is meant it leaves open, so both are given. The
prompt is read once, then all choices side by side. Nothing is written and nothing is learned.

Systems: in-context-learning
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.sampling.decoder import Decoder, begin
from descend.sampling.sequence import log_softmax


class Scored(NamedTuple):
    """log p of each choice (n), and per token (n)."""

    total: Tensor
    per_token: Tensor


def score_choices(decoder: Decoder, prompt: Sequence[int], choices: Sequence[Sequence[int]]) -> Scored:
    """s of each choice after the prompt."""
    if not choices or not all(len(choice) for choice in choices):
        raise Mistake("choices to score are texts of at least one token each")
    longest = max(map(len, choices))
    log_p = log_softmax(begin(decoder, [list(prompt)], longest))
    length = torch.tensor([len(choice) for choice in choices])
    rows = torch.zeros(len(choices), longest, dtype=torch.long)
    for row, choice in zip(rows, choices, strict=True):
        row[: len(choice)] = torch.tensor(choice)
    decoder.reorder(torch.zeros(len(choices), dtype=torch.long))  # a copy of the prompt for each
    log_p, total = log_p.expand(len(choices), -1), torch.zeros(len(choices), dtype=torch.float64)
    for i in range(longest):
        at = log_p.gather(1, rows[:, i : i + 1])[:, 0].double()
        total += torch.where(i < length, at, 0.0)
        if i < longest - 1:
            log_p = log_softmax(decoder.step(rows[:, i]))
    return Scored(total, total / length)
