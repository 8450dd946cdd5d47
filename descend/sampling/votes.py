"""Self-consistency: sample several chains of reasoning, and take the answer that most of them end with.

    a_1 .. a_n  answers of n sampled chains          a* = argmax_a #{i : a_i = a}

Chains without an answer do not vote. Of answers that were said equally often the one said first is taken: a rule that
needs no chance, so equal chains give equal answers. With two possible answers and chains that are right with
probability p, independently, the vote of an odd n is right with

    P(n) = Σ_{k > n/2} C(n, k) p^k (1 − p)^{n−k}          n = 5: 0.683 at p = 0.6, but 0.317 at p = 0.4

so it helps only where one chain is right more often than not. An even n may tie; the first answer is then right half of
the time, so ties count half.

Systems: self-consistency
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from descend.errors import Mistake


@dataclass(frozen=True)
class Vote:
    """The answer, and how it came about."""

    answer: str | None
    """None where no chain has one."""
    counts: dict[str, int]
    """How often each answer was said, in the order in which they came."""
    tied: bool
    silent: int
    """Chains without an answer."""

    @property
    def share(self) -> float:
        """Of the chains with an answer, those that say this one."""
        return self.counts[self.answer] / sum(self.counts.values()) if self.answer is not None else 0.0


def vote(answers: Sequence[str | None]) -> Vote:
    """The majority, the first of equals."""
    said = [answer for answer in answers if answer is not None]
    counts = dict(Counter(said))
    most = max(counts.values(), default=0)
    best = [answer for answer, count in counts.items() if count == most]
    return Vote(best[0] if best else None, counts, len(best) > 1, len(answers) - len(said))


def answer_consistently(
    write: Callable[[int], str], parse: Callable[[str], str | None], n: int
) -> tuple[Vote, list[str]]:
    """Sample n chains, `write(seed)`, and vote; the chains with it."""
    if n < 1:
        raise Mistake(f"{n} chains: self-consistency needs at least one")
    chains = [write(seed) for seed in range(n)]
    return vote([parse(chain) for chain in chains]), chains


def vote_accuracy(p: float, n: int) -> float:
    """P(n), how often the vote of n chains is right where there are two answers."""
    if not 0 <= p <= 1 or n < 1:
        raise Mistake(f"p = {p}, n = {n}: a probability and a number of chains are needed")
    terms = (math.comb(n, k) * p**k * (1 - p) ** (n - k) * (1 if 2 * k > n else 0.5) for k in range(-(-n // 2), n + 1))
    return math.fsum(terms)
