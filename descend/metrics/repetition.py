"""How much a text repeats itself: distinct n-grams.

    distinct-n = different n-grams / all n-grams          1: nothing comes twice;  near 0: a loop

Greedy and beam search score low, human text and top-p high (DLN, the likelihood trap). It falls with the length of any
text, so compare texts of one length.

Systems: likelihood-trap
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def distinct(tokens: Sequence[Hashable], n: int) -> float:
    """Different n-grams, of all; 1 for a text shorter than n."""
    if n < 1:
        raise ValueError(f"n is {n}: n-grams have at least 1 token")
    grams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
    return len(set(grams)) / len(grams) if grams else 1.0


def loop_length(tokens: Sequence[Hashable], repeats: int = 3) -> int:
    """The period of the loop that a text ends in, if its last tokens are the same ones `repeats` times; else 0."""
    for period in range(1, len(tokens) // repeats + 1):
        last = list(tokens[-period:])
        if list(tokens[-period * repeats :]) == last * repeats:
            return period
    return 0
