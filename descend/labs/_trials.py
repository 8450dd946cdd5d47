"""How many repetitions a budget buys."""

from __future__ import annotations

from descend.labs._evidence import NeedsMore


def buy_trials(budget: float, price: float, least: int) -> int:
    """The repetitions that `budget` seconds buy at `price` a second; NeedsMore where they are fewer than `least`."""
    trials = round(price * budget)
    if trials < least:
        raise NeedsMore(least / price)
    return trials
