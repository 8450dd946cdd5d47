"""Numbers, dates and sums as English: small tasks that need no file, from one text to another.

words: 342          three hundred forty-two
date: 7 March 2021  2021-03-07
add: 37 + 45        82
"""

from __future__ import annotations

import calendar
import datetime
import random
from collections.abc import Callable

UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def number_words(n: int) -> str:
    """0..999,999 in words: 342 is three hundred forty-two."""
    if n < 20:
        return UNITS[n]
    if n < 100:
        return TENS[n // 10 - 2] + (f"-{UNITS[n % 10]}" if n % 10 else "")
    if n < 1000:
        return f"{UNITS[n // 100]} hundred" + (f" {number_words(n % 100)}" if n % 100 else "")
    return f"{number_words(n // 1000)} thousand" + (f" {number_words(n % 1000)}" if n % 1000 else "")


def words(draw: random.Random) -> tuple[str, str]:
    n = draw.randrange(10 ** draw.randint(1, 4))
    return f"words: {n}", number_words(n)


def date(draw: random.Random) -> tuple[str, str]:
    """A day in one of four ways of writing it, and in ISO 8601."""
    day = datetime.date(1900, 1, 1) + datetime.timedelta(days=draw.randrange(73049))
    month = calendar.month_name[day.month]
    forms = (
        f"{day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
        f"{day.day}.{day.month}.{day.year}",
        f"{day.month}/{day.day}/{day.year}",
    )
    return f"date: {draw.choice(forms)}", day.isoformat()


def add(draw: random.Random) -> tuple[str, str]:
    a, b = draw.randrange(100), draw.randrange(100)
    return f"add: {a} + {b}", str(a + b)


TASKS: dict[str, Callable[[random.Random], tuple[str, str]]] = {"words": words, "date": date, "add": add}


def pairs(names: tuple[str, ...], count: int, seed: int = 0) -> list[tuple[str, str]]:
    """`count` pairs (source, target), the tasks in turn; no source comes twice while a task has others."""
    draw, seen, found = random.Random(seed), set[str](), []
    for i in range(count):
        for _ in range(20):
            pair = TASKS[names[i % len(names)]](draw)
            if pair[0] not in seen:
                break
        seen.add(pair[0])
        found.append(pair)
    return found
