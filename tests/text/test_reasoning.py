"""Prompts for chains of thought are the book's, to the letter, and answers are read from what models write."""

from __future__ import annotations

import pytest

from descend.catalog.examples.finetuning_alignment.reasoning import (
    write_cafeteria,
    write_market,
    write_odd,
    write_tennis,
)
from descend.text.reasoning import (
    Exemplar,
    answer_in_two_stages,
    ask_for_answer,
    ask_for_steps,
    ask_question,
    parse_answer,
    split_steps,
)

SLUG = "chain-of-thought"
TENNIS = (
    "Roger has 5 tennis balls. He buys 2 more cans of tennis balls. Each can has 3 tennis balls. "
    "How many tennis balls does he have now?"
)
CAFETERIA = (
    "The cafeteria had 23 apples. If they used 20 to make lunch and bought 6 more, how many apples do they have?"
)
MARKET = (
    "I went to the market and bought 10 apples. I gave 2 apples to the neighbor and 2 to the repairman. I then went "
    "and bought 5 more apples and ate 1. How many apples did I remain with?"
)
GROUP = "The odd numbers in this group add up to an even number: {}."


@pytest.mark.system(SLUG, "four-prompts")
def test_the_books_prompts_with_and_without_steps() -> None:
    direct = f"Q: {TENNIS}\nA: The answer is 11\n\nQ: {CAFETERIA}\nA:"
    assert ask_question(CAFETERIA, [Exemplar(TENNIS, "11")]) == direct
    steps = (
        "Roger started with 5 balls. 2 cans of 3 tennis balls each is 6 tennis balls. $5 + 6 = 11$. The answer is 11."
    )
    assert write_tennis(5, 2, 3) == steps
    taught = ask_question(CAFETERIA, [Exemplar(TENNIS, "11", steps.removesuffix(" The answer is 11."))])
    assert taught == f"Q: {TENNIS}\nA: {steps}\n\nQ: {CAFETERIA}\nA:"
    assert ask_question(MARKET) == f"Q: {MARKET}\nA:"
    assert ask_for_steps(MARKET) == f"Q: {MARKET} Let's think step by step.\nA:"


@pytest.mark.system(SLUG, "four-prompts")
def test_two_examples_with_steps() -> None:
    groups = {
        "16, 11, 14, 4, 8, 13, 24": "Adding all the odd numbers (11, 13) gives 24.",
        "17, 9, 10, 12, 13, 4, 2": "Adding all the odd numbers (17, 9, 13) gives 39.",
    }
    shown = []
    for (numbers, steps), answer in zip(groups.items(), ("True", "False"), strict=True):
        assert write_odd([int(n) for n in numbers.split(", ")]) == f"{steps} The answer is {answer}."
        shown.append(Exemplar(GROUP.format(numbers), answer, steps))
    query = GROUP.format("15, 32, 5, 13, 82, 7, 1")
    assert ask_question(query, shown) == (
        "Q: The odd numbers in this group add up to an even number: 16, 11, 14, 4, 8, 13, 24.\n"
        "A: Adding all the odd numbers (11, 13) gives 24. The answer is True.\n\n"
        "Q: The odd numbers in this group add up to an even number: 17, 9, 10, 12, 13, 4, 2.\n"
        "A: Adding all the odd numbers (17, 9, 13) gives 39. The answer is False.\n\n"
        f"Q: {query}\nA:"
    )


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "answer-parser")
@pytest.mark.parametrize(
    ("written", "answer"),
    [
        (write_tennis(5, 2, 3), "11"),
        (write_cafeteria(23, 20, 6), "9"),
        (write_odd([15, 32, 5, 13, 82, 7, 1]), "False"),
        (write_market(10, [2, 2], 5, 1), "10"),
        ("The answer is 27 (Incorrect)", "27"),
        ("The answer is 11 apples (Incorrect)", "11"),
        ("so the answer is $1,200.50.", "1200.5"),
        ("The answer is 11.0", "11"),
        ("The answer is -3.", "-3"),
        ("The answer is −3 degrees.", "-3"),
        ("The answer (arabic numerals) is 8.", "8"),
        ("The answer is: true", "True"),
        ("The answer is 4. No, the answer is 5.", "5"),
        ("The answer is Paris. Q: And of Italy?", "Paris"),
        ("She has 3 + 4 = 7 apples.", None),
        ("The answer is", None),
        ("", None),
    ],
)
def test_answers_are_read(written: str, answer: str | None) -> None:
    assert parse_answer(written) == answer


@pytest.mark.system(SLUG, "two-stage")
def test_steps_are_asked_for_first_and_then_the_answer() -> None:
    asked: list[str] = []

    def write(prompt: str) -> str:
        asked.append(prompt)
        return " 10 apples.\nQ: .." if prompt.endswith("the answer is") else " You had 6, then 11.\n"

    steps, answer = answer_in_two_stages(MARKET, write)
    first = f"Q: {MARKET} Let's think step by step.\nA:"
    assert asked == [first, f"{first} You had 6, then 11.\nTherefore, the answer is"]
    assert asked[1] == ask_for_answer(first, steps)
    assert (steps, answer) == (" You had 6, then 11.\n", "10")
    assert answer_in_two_stages(MARKET, lambda prompt: "")[1] is None


def test_a_chain_has_its_sentences() -> None:
    assert split_steps(write_cafeteria(23, 20, 6)) == [
        "The cafeteria had 23 apples originally.",
        "They used 20 to make lunch.",
        "So, they had $23 - 20 = 3$.",
        "They bought 6 more apples, so they have $3 + 6 = 9$.",
        "The answer is 9.",
    ]
    assert split_steps("3.5 + 1 = 4.5; 4.5 + 1 = 5.5\nend") == ["3.5 + 1 = 4.5;", "4.5 + 1 = 5.5", "end"]
    assert split_steps(" ") == []
