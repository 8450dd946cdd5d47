"""Tasks whose answers are known: what language models are said to learn all at once when they grow.

    addition     "47+85="                 "231"           the last digit first, so that carries go forward
    unscramble   "elppa="                 "apple"         one of 24 words, its letters shuffled
    context      "a3 k7 p1 k="            "7"             a pairing that stands only in the question
    fallacy      "all ab are cd, x is ab, so x is cd="    "v" valid, or "f": affirming the consequent
    direct       "3+4-2+5="               "0"             mod 10, at once
    steps        the same                 "750"           every step written down: a chain of thought

VOM 14.5.1 names the kinds and no data; three-digit addition, 100B parameters and the like are not in reach here.
`chance` is what a guesser gets who knows the form of an answer and nothing of the question.

Systems: emergent-abilities
"""

from __future__ import annotations

import random
from collections.abc import Callable

from descend.errors import Mistake, nearest

Drawn = tuple[str, str]
"""Question and answer."""
WORDS = (
    *("apple", "bread", "chair", "dance", "eagle", "field", "glass", "house", "jelly", "knife", "lemon", "mouse"),
    *("north", "ocean", "piano", "queen", "river", "sugar", "tiger", "uncle", "voice", "water", "youth", "zebra"),
)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
FORMS = 6  # characters of a pairing and of a term are drawn among so many


def addition(draw: random.Random, digits: int = 2) -> Drawn:
    """a + b of so many digits; the answer has one digit more."""
    a, b = (draw.randrange(10**digits) for _ in range(2))
    return f"{a:0{digits}}+{b:0{digits}}=", f"{a + b:0{digits + 1}}"[::-1]


def unscramble(draw: random.Random) -> Drawn:
    word = draw.choice(WORDS)
    letters = list(word)
    draw.shuffle(letters)
    return "".join(letters) + "=", word


def context(draw: random.Random, pairs: int = 3) -> Drawn:
    keys = draw.sample(LETTERS[:FORMS], pairs)
    values = [str(draw.randrange(10)) for _ in keys]
    asked = draw.randrange(pairs)
    return " ".join(map("".join, zip(keys, values, strict=True))) + f" {keys[asked]}=", values[asked]


def fallacy(draw: random.Random) -> Drawn:
    a, b = draw.sample(LETTERS[:FORMS], 2)
    valid = draw.random() < 0.5
    given, said = (a, b) if valid else (b, a)
    return f"{a}>{b},x{given},x{said}=", "v" if valid else "f"


def count(draw: random.Random, terms: int = 4) -> tuple[str, list[int]]:
    """A sum and a difference after the other, and what stands after each of them, mod 10."""
    text, total, told = "", 0, []
    for place in range(terms):
        digit, sign = draw.randrange(10), "+" if place == 0 or draw.random() < 0.5 else "-"
        total = (total + digit if sign == "+" else total - digit) % 10
        text += ("" if place == 0 else sign) + str(digit)
        told.append(total)
    return f"{text}=", told[1:]


def direct(draw: random.Random) -> Drawn:
    question, told = count(draw)
    return question, str(told[-1])


def steps(draw: random.Random) -> Drawn:
    question, told = count(draw)
    return question, "".join(map(str, told))


ABILITIES: dict[str, Callable[[random.Random], Drawn]] = {
    "addition": addition,
    "unscramble": unscramble,
    "context": context,
    "fallacy": fallacy,
    "direct": direct,
    "steps": steps,
}


def ask(name: str, n: int, seed: int) -> list[Drawn]:
    """n questions of one kind."""
    if name not in ABILITIES:
        raise Mistake(f"there is no ability {name!r}.{nearest(name, ABILITIES)} They are {', '.join(ABILITIES)}")
    draw = random.Random(f"{name} {seed}")
    return [ABILITIES[name](draw) for _ in range(n)]


def chance(name: str) -> float:
    """Exact match of a guess without the question: the likeliest answer, or one of equally likely ones."""
    return {
        "addition": 100 / 100**2,  # of a + b = 99, the likeliest sum
        "unscramble": 1 / len(WORDS),
        "context": 1 / 10,
        "fallacy": 1 / 2,
        "direct": 1 / 10,
        "steps": 1 / 10**3,
    }[name]
