"""Generated questions about opinions, and answers whose quality is known exactly: what preferences are made of here.

    question   how was the film ?          what do you say about the plot ?          ..
    answer     the film was good , clever and dull .
    quality    (praising words) − (blaming words) − 2 [it is about something else than was asked]

A word that is said twice counts once. Any text has a quality, also what a model writes: 0 where it praises nothing,
blames nothing, and at least names what was asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

import torch

from descend.data.text.sentiment import BAD, GOOD, NOUNS

QUESTIONS = (
    "how was the {} ?", "what do you say about the {} ?", "and the {} ?", "did you like the {} ?", "what of the {} ?",
    "how did you find the {} ?", "your view of the {} ?", "so , how was the {} ?",
)  # fmt: skip
PROMPTS = tuple(question.format(noun) + " " for noun, question in product(NOUNS, QUESTIONS))
MOST_WORDS = 4
ELSEWHERE = 0.35  # share of the answers that are about something else
PENALTY = 2.0


def answer(prompt: str, random: torch.Generator) -> str:
    """An answer to a prompt, good or bad by chance."""
    pick = lambda words: words[int(torch.randint(len(words), (), generator=random))]
    noun = pick(NOUNS) if float(torch.rand((), generator=random)) < ELSEWHERE else find_nouns(prompt)[0]
    words = [pick(GOOD + BAD) for _ in range(1 + int(torch.randint(MOST_WORDS, (), generator=random)))]
    said = " , ".join(words[:-1]) + (" and " if words[1:] else "") + words[-1]
    return f"the {noun} was {said} ."


def answer_differently(prompt: str, count: int, random: torch.Generator) -> list[str]:
    """So many different answers."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[answer(prompt, random)] = None
    return list(found)


def quality(prompt: str, response: str) -> float:
    """How good an answer is."""
    words = set(re.findall(r"[a-z]+", response.lower()))
    wrong = not words & set(find_nouns(prompt))
    return float(len(words & set(GOOD)) - len(words & set(BAD))) - PENALTY * wrong


def find_nouns(text: str) -> list[str]:
    """What a text is about."""
    return [word for word in re.findall(r"[a-z]+", text.lower()) if word in NOUNS]


def qualities(prompts: Sequence[str], responses: Sequence[str]) -> list[float]:
    """Of each response to the prompt beside it."""
    return [quality(prompt, response) for prompt, response in zip(prompts, responses, strict=True)]
