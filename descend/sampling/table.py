"""The next-token distribution as a table, and the probability of a sentence.

    P(next | context) = softmax(z)             one number ≥ 0 for each token of the vocabulary, together 1
    P(w_1 .. w_n) = Π_t P(w_t | w_<t)          the chain rule; over all sequences of one length these sum to 1 too

"The cat sat on the": mat 0.35, floor 0.20, rug 0.15, … VOM prints the table twice, with bed or table as fourth word.
`descend.sampling.sequence` has log P from a model's logits; training raises it (`descend.losses.language`).

Systems: autoregressive-factorization
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from descend.sampling.sequence import log_softmax, sequence_log_probability


def next_token_table(logits: Tensor, names: Sequence[str], most: int | None = None) -> list[tuple[str, float]]:
    """Tokens and probabilities, most probable first: logits (v,) -> at most `most` rows."""
    p, order = log_softmax(logits).exp().sort(descending=True, stable=True)
    return [(names[int(i)], float(x)) for i, x in zip(order[:most], p[:most], strict=True)]


def sentence_probability(conditionals: Tensor) -> Tensor:
    """Π_t P(w_t | w_<t) from the conditionals (t,)."""
    logits = torch.stack([conditionals, 1 - conditionals], -1).log()  # the token, and all others together
    return sequence_log_probability(logits[None], torch.zeros(1, len(conditionals), dtype=torch.long))[0].exp()


def rows_that_differ(one: Mapping[str, float], other: Mapping[str, float]) -> list[str]:
    """Tokens that only one table has, or that have another probability in it."""
    return sorted(t for t in {**one, **other} if one.get(t) != other.get(t))
