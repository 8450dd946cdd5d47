"""Chain of thought: prompts that ask for the steps, and what the answer at their end is.

    direct       Q: <question>            A: The answer is <answer>           examples, then the question and "A:"
    few-shot     Q: <question>            A: <steps> The answer is <answer>.
    zero-shot    Q: <question> Let's think step by step.
                 A:
    two stages   the model writes its steps z after "A:"; then it is asked again, with z in the prompt:
                 <first prompt> z
                 Therefore, the answer is

The words are DLN's (and the phrase S940's); the second stage is that of Kojima et al. (2022), which S940 leaves out.
Between examples stands an empty line. An answer is what follows the last "answer is": a number without its unit
("10 apples" is 10; 1,200 is 1200; 11.0 is 11), True or False, else the words up to the full stop. Without such a
sentence there is no answer (`None`): the last number of a chain may be a step.

Systems: chain-of-thought
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

PHRASE = "Let's think step by step"
SAYS = re.compile(r"answer(?: \([^)]*\))? is:?\s*(.*?)(?:\.(?!\d)|\n|$)", re.IGNORECASE)
NUMBER = re.compile(r"[-−]?\$?\d[\d,]*(?:\.\d+)?")
STEP = re.compile(r"(?<=[.!?;])\s+|\n+")


class Exemplar(NamedTuple):
    """A solved question; without steps it shows the answer alone."""

    question: str
    answer: str
    steps: str = ""

    def show(self) -> str:
        """As it stands in a prompt."""
        answer = f"{self.steps} The answer is {self.answer}." if self.steps else f"The answer is {self.answer}"
        return f"Q: {self.question}\nA: {answer}"


def ask_question(question: str, exemplars: Sequence[Exemplar] = ()) -> str:
    """The prompt of a question after k solved ones; with none, the question alone."""
    return "\n\n".join([*(exemplar.show() for exemplar in exemplars), f"Q: {question}\nA:"])


def ask_for_steps(question: str) -> str:
    """The zero-shot prompt: the phrase at the end of the question."""
    return ask_question(f"{question} {PHRASE}.")


def ask_for_answer(first: str, steps: str) -> str:
    """The second stage: the first prompt, what the model wrote, and the beginning of the answer."""
    return f"{first} {steps.strip()}\nTherefore, the answer is"


def answer_in_two_stages(question: str, write: Callable[[str], str]) -> tuple[str, str | None]:
    """The steps and the answer, where `write` continues a prompt."""
    first = ask_for_steps(question)
    steps = write(first)
    return steps, read_value(write(ask_for_answer(first, steps)))


def parse_answer(text: str) -> str | None:
    """The answer that a text ends with."""
    found = SAYS.findall(text)
    return read_value(found[-1]) if found else None


def read_value(said: str) -> str | None:
    """A number, True, False, or the words themselves."""
    said = re.split(r"\.(?!\d)|\n", said.strip(), maxsplit=1)[0].strip().strip("$*\"' ")
    if number := NUMBER.search(said):
        value = float(number[0].replace(",", "").replace("$", "").replace("−", "-"))
        return str(int(value)) if value == int(value) else str(value)
    return {"true": "True", "false": "False"}.get(said.lower(), said) or None


def split_steps(chain: str) -> list[str]:
    """The sentences of a chain."""
    return [step for step in STEP.split(chain.strip()) if step]
