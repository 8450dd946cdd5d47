"""Short instructions with exact answers, so that what a model was taught can be counted right or wrong.

    first     First letter of bead             b         has       Is there a c in bead?             no
    second    Second letter of bead            e         count     Count b in babe                   2
    third     Third letter of bead             a         parity    Is 374 even or odd?               even
    last      How does bead end?               d         larger    Is 37 larger than 45?             no
    capital   First letter of bead, in capitals B        reverse   Write bead backwards.             daeb
    twice     Last letter of bead, twice       dd        upper     Write bead in capitals.           BEAD
                                                         sort      Put the letters of bead in order. abde
                                                         add       How much is 37 and 45?            82

The first six are learned within a minute or two; the others take a small model much longer. Each task is worded in two
or three ways (a template filled with its content), as in collections that were made from other data sets. What is held
out differs in content, not only in wording.

Systems: instruction-dataset
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

LETTERS = "abcdefgh"
SHORTEST, LONGEST = 3, 5  # letters of a word
REPEATED = 20  # draws after which a content may come again
ATTEMPTS = 200  # draws after which there is none


class Filled(NamedTuple):
    """The content of an instruction, which fills in the template, and its exact answer."""

    content: Mapping[str, object]
    answer: str


@dataclass(frozen=True)
class Skill:
    """A task that can be asked for in several ways."""

    wordings: tuple[str, ...]
    draw: Callable[[random.Random], Filled]


class Instruction(NamedTuple):
    """An instruction, its answer, and the name of its task."""

    task: str
    instruction: str
    answer: str
    key: str
    """Its task and content: what two wordings have in common."""


def word(draw: random.Random) -> str:
    """Some letters."""
    return "".join(draw.choices(LETTERS, k=draw.randint(SHORTEST, LONGEST)))


def of_word(answer: Callable[[str], str]) -> Callable[[random.Random], Filled]:
    """A task on one word."""

    def draw(chance: random.Random) -> Filled:
        w = word(chance)
        return Filled({"w": w}, answer(w))

    return draw


def count_letter(chance: random.Random) -> Filled:
    """How often a letter stands in a word that has it more often than chance would."""
    a = chance.choice(LETTERS)
    w = "".join(a if chance.random() < 0.4 else b for b in word(chance))
    return Filled({"a": a, "w": w}, str(w.count(a)))


def has_letter(chance: random.Random) -> Filled:
    """Whether a letter stands in a word; half of the time it does."""
    w = word(chance)
    a = chance.choice(w) if chance.random() < 0.5 else chance.choice([b for b in LETTERS if b not in w])
    return Filled({"a": a, "w": w}, "yes" if a in w else "no")


def tell_parity(chance: random.Random) -> Filled:
    n = chance.randrange(100, 1000)
    return Filled({"n": n}, "odd" if n % 2 else "even")


def compare_numbers(chance: random.Random) -> Filled:
    a, b = chance.sample(range(10, 100), 2)
    return Filled({"a": a, "b": b}, "yes" if a > b else "no")


def add_numbers(chance: random.Random) -> Filled:
    a, b = chance.randrange(100), chance.randrange(100)
    return Filled({"a": a, "b": b}, str(a + b))


SKILLS: dict[str, Skill] = {
    "first": Skill(("First letter of {w}", "How does {w} begin?"), of_word(lambda w: w[0])),
    "last": Skill(("Last letter of {w}", "How does {w} end?"), of_word(lambda w: w[-1])),
    "second": Skill(("Second letter of {w}", "What follows the first of {w}?"), of_word(lambda w: w[1])),
    "third": Skill(("Third letter of {w}", "What follows the second of {w}?"), of_word(lambda w: w[2])),
    "capital": Skill(("First letter of {w}, in capitals", "Capital of {w}"), of_word(lambda w: w[0].upper())),
    "twice": Skill(("Last letter of {w}, twice", "Double the end of {w}"), of_word(lambda w: 2 * w[-1])),
    "has": Skill(("Is there a {a} in {w}?", "Has {w} a {a}?"), has_letter),
    "count": Skill(("Count {a} in {w}", "How many {a} in {w}?"), count_letter),
    "parity": Skill(("Is {n} even or odd?", "Parity of {n}"), tell_parity),
    "larger": Skill(("Is {a} larger than {b}?", "{a} > {b}?"), compare_numbers),
    "reverse": Skill(("Write {w} backwards.", "Reverse {w}."), of_word(lambda w: w[::-1])),
    "upper": Skill(("Write {w} in capitals.", "Uppercase {w}."), of_word(str.upper)),
    "sort": Skill(("Put the letters of {w} in order.", "Sort {w}."), of_word(lambda w: "".join(sorted(w)))),
    "add": Skill(("How much is {a} and {b}?", "Add {a} to {b}.", "{a} + {b}"), add_numbers),
}
QUICK = ("first", "second", "third", "last", "capital", "twice")
"""Skills that a small model learns within minutes."""


def ask(names: Sequence[str], count: int, seed: int = 0, without: Collection[str] = ()) -> list[Instruction]:
    """`count` instructions, the tasks in turn, none with a content of `without`; none comes twice while a task has
    other contents."""
    chance, seen, found = random.Random(seed), set[str](), list[Instruction]()
    while len(found) < count:
        name = names[len(found) % len(names)]
        for attempt in range(ATTEMPTS):
            content, answer = SKILLS[name].draw(chance)
            key = key_of(name, content)
            if key not in without and (key not in seen or attempt >= REPEATED):
                break
        else:
            raise ValueError(f"{name}: no content is left that is not held out")
        seen.add(key)
        found.append(Instruction(name, chance.choice(SKILLS[name].wordings).format(**content), answer, key))
    return found


def key_of(name: str, content: Mapping[str, object]) -> str:
    """A task and its content as a text."""
    return " ".join([name, *map(str, content.values())])


class Exercises(NamedTuple):
    """Instructions for training, selecting and one last look."""

    train: list[Instruction]
    valid: list[Instruction]
    test: list[Instruction]


def split_instructions(names: Sequence[str], train: int, held_out: int, seed: int = 0) -> Exercises:
    """Parts that share no content; the test part has as many as the validation part."""
    later = ask(names, 2 * held_out, seed)
    valid, test = later[:held_out], later[held_out:]
    selected = {one.key for one in valid}
    taught = ask(names, train, seed + 1, {one.key for one in later})
    return Exercises(taught, valid, [one for one in test if one.key not in selected])
