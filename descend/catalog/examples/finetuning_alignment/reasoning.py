"""Worked examples of chains of thought, and of their vote: DLN's questions, and a vote by the binomial distribution.

Each chain is the book's sentence with the example's numbers in it; the library's parser reads its steps and its answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from descend.catalog.examples import Compute, Inputs
from descend.sampling.votes import vote_accuracy
from descend.text.reasoning import parse_answer, split_steps


def write_tennis(start: int, cans: int, per_can: int) -> str:
    more = cans * per_can
    return (
        f"Roger started with {start} balls. {cans} cans of {per_can} tennis balls each is {more} tennis balls. "
        f"${start} + {more} = {start + more}$. The answer is {start + more}."
    )


def write_cafeteria(start: int, used: int, bought: int) -> str:
    left = start - used
    return (
        f"The cafeteria had {start} apples originally. They used {used} to make lunch. "
        f"So, they had ${start} - {used} = {left}$. "
        f"They bought {bought} more apples, so they have ${left} + {bought} = {left + bought}$. "
        f"The answer is {left + bought}."
    )


def write_odd(numbers: Sequence[int]) -> str:
    odd = [n for n in numbers if n % 2]
    told = ", ".join(map(str, odd))
    return f"Adding all the odd numbers ({told}) gives {sum(odd)}. The answer is {sum(odd) % 2 == 0}."


def write_market(bought: int, given: Sequence[int], bought_more: int, eaten: int) -> str:
    left = bought - sum(given)
    now = left + bought_more
    return (
        f"First, you started with {bought} apples. You gave away {given[0]} apples to the neighbor and {given[1]} to "
        f"the repairman, so you had {left} apples left. Then you bought {bought_more} more apples, so now you had "
        f"{now} apples. Finally, you ate {eaten} apple, so you would remain with {now - eaten} apples. "
        f"The answer is {now - eaten} apples."
    )


def numbers_of(step: str) -> list[int]:
    return [int(found) for found in re.findall(r"\d+", step)]


def read_answer(chain: str) -> int:
    answer = parse_answer(chain)
    return int(answer) if answer is not None else -1


def tennis(i: Inputs) -> Inputs:
    chain = write_tennis(i["start"], i["cans"], i["per_can"])
    return {"answer": read_answer(chain), "intermediate": numbers_of(split_steps(chain)[1])[-1]}


def cafeteria(i: Inputs) -> Inputs:
    chain = write_cafeteria(i["start"], i["used"], i["bought"])
    return {"answer": read_answer(chain), "intermediate": numbers_of(split_steps(chain)[2])[-1]}


def odd_group(i: Inputs) -> Inputs:
    chain = write_odd(i["numbers"])
    *odd, total = numbers_of(split_steps(chain)[0])
    return {"odd": odd, "sum": total, "answer": parse_answer(chain) == "True"}


def market(i: Inputs) -> Inputs:
    chain = write_market(i["bought"], i["given"], i["bought_more"], i["eaten"])
    return {
        "answer": read_answer(chain),
        "intermediates": [numbers_of(step)[-1] for step in split_steps(chain)[1:3]],
    }


def majority(i: Inputs) -> Inputs:
    return {
        "accuracy": [vote_accuracy(i["p"], n) for n in i["n"]],
        "accuracy_p_0_4": [vote_accuracy(1 - i["p"], n) for n in i["n"]],
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-CoT-tennis": tennis,
    "DLN-CoT-cafeteria": cafeteria,
    "DLN-CoT-odd-1": odd_group,
    "DLN-CoT-odd-2": odd_group,
    "DLN-CoT-odd-3": odd_group,
    "DLN-CoT-market": market,
    "S940-12.2-self-consistency": majority,
}

SET_ASIDE: dict[str, str] = {}
