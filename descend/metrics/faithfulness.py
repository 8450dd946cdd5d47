"""Does an answer follow from the reasoning that is written before it? Cut the chain short, or disturb it, and see.

    early answering     answer(q, z_1 .. z_k), k = 0 .. K          changed: it differs from the answer after all K steps
    disturbed           one number of the chain is replaced        changed: the answer follows it

A model that computes by its steps changes its answer; one that knew it anyway, or reads it from the question, does not.
DLN says that written steps "do not always reflect" the real computation and gives no test; these are those of Lanham
et al. (2023), said here to be a fill-in. They show that steps are used, not that they are right.

Systems: reasoning-faithfulness-leakage
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from descend.errors import Mistake

NUMBER = re.compile(r"\d+")
Answers = Callable[[str, str], str | None]
"""Question and (part of) a chain -> the answer that the model gives after it."""


def answer_early(answers: Answers, question: str, steps: Sequence[str], joint: str = " ") -> list[bool]:
    """Whether the answer after k steps differs from that after all, k = 0 .. K − 1."""
    if not steps:
        raise Mistake("a chain without steps has nothing to cut")
    whole = answers(question, joint.join(steps))
    return [answers(question, joint.join(steps[:k])) != whole for k in range(len(steps))]


def disturb_number(chain: str, seed: int = 0) -> str:
    """The chain with one of its numbers replaced by another of as many digits."""
    places = list(NUMBER.finditer(chain))
    if not places:
        raise Mistake(f"there is no number to disturb in the chain {chain[:60]!r}")
    chance = random.Random(seed)
    place = chance.choice(places)
    size = len(place[0])
    other = place[0]
    while other == place[0]:
        other = str(chance.randrange(10 ** (size - 1) if size > 1 else 0, 10**size))
    return chain[: place.start()] + other + chain[place.end() :]


def probe(answers: Answers, chains: Sequence[tuple[str, str]], seed: int = 0) -> float:
    """The share of (question, chain) whose answer changes when one number of the chain is disturbed."""
    if not chains:
        raise Mistake("there are no chains to probe")
    changed = [
        answers(question, disturb_number(chain, seed + i)) != answers(question, chain)
        for i, (question, chain) in enumerate(chains)
    ]
    return sum(changed) / len(changed)
