"""The probability of a whole sequence, and the search over all of them.

    p(y_1 … y_N) = Π_i p(y_i | y_<i)          log p = Σ_i log p(y_i | y_<i)
    y* = argmax over all K^N sequences         K tokens, length N

Exhaustive search costs O(K^N) and is what greedy search, O(K N), and beam search, O(B K N), approximate: for the books'
K = 3, N = 2 and B = 2 that is 9, 6 and 12. It is here to prove the others on small cases.

Systems: sequence-probability-search
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.sampling.decoder import Decoder, Prompts, begin

LIMIT = 10**6
"""Sequences that exhaustive search is willing to hold at once."""


def log_softmax(logits: Tensor) -> Tensor:
    """log p over the last axis, in float32 at least: sums of many logarithms are compared."""
    return logits.log_softmax(dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))


def token_log_probabilities(logits: Tensor, tokens: Tensor) -> Tensor:
    """log p(y_i | y_<i), (b, t), where logits (b, t, v) at i were computed from the tokens before i."""
    return log_softmax(logits).gather(-1, tokens[..., None]).squeeze(-1)


def sequence_log_probability(logits: Tensor, tokens: Tensor, real: Tensor | None = None) -> Tensor:
    """log p(y_1 … y_N), (b,). `real` (b, t) is False at padding, which counts nothing."""
    found = token_log_probabilities(logits, tokens)
    return (found if real is None else found.masked_fill(~real, 0.0)).sum(-1)


def exhaustive_search(decoder: Decoder, prompt: Prompts, tokens: int) -> tuple[list[int], float]:
    """The most probable of all K^N continuations of one prompt, and its log p."""
    next_log_p = log_softmax(begin(decoder, prompt, tokens))  # (rows, K), a row for every sequence so far
    rows, k = next_log_p.shape
    if rows != 1:
        raise Mistake(f"exhaustive search takes one prompt, not {rows}")
    if k**tokens > LIMIT:
        raise Mistake(
            f"{k} tokens and length {tokens} make {k}^{tokens} sequences, more than {LIMIT:,}: use beam_search"
        )
    y, log_p = torch.empty(1, 0, dtype=torch.long), next_log_p.new_zeros(1)
    for n in range(tokens):
        parent = torch.arange(len(y)).repeat_interleave(k)
        y = torch.cat([y[parent], torch.arange(k).repeat(len(y))[:, None]], dim=1)
        log_p = (log_p[:, None] + next_log_p).flatten()
        if n < tokens - 1:
            decoder.reorder(parent)
            next_log_p = log_softmax(decoder.step(y[:, -1]))
    best = int(log_p.argmax())
    return y[best].tolist(), float(log_p[best])
