"""Simplicity bias: random networks give simple functions far more often than complicated ones.

    f: {0, 1}⁷ → {0, 1} by a ReLU net 7-40-40-1 with random weights;  K(f) the Lempel-Ziv complexity of its truth table
    fair weights would give each of the 2^128 functions the probability 2^−128

Functions that come up at least twice have a frequency to speak of; their rank correlation with K is reported, and the
mean K of drawn functions beside that of fair coin tosses.

Systems: simplicity-bias
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import torch

from descend.labs._evidence import AtLeast, AtMost
from descend.labs._panels import COLOURS, finish, make_panels
from descend.labs._trials import buy_trials
from descend.theory.generalization.complexity import draw_functions, lempel_ziv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.176",)
PRINTED = "Most random weights give simple functions (the measure of simplicity is not in the text)."
CLAIM = (
    "Among the Boolean functions of 7 bits that random networks give, the probability falls with the Lempel-Ziv"
    " complexity, drawn functions are simpler than coin tosses, and constant functions have a probability of percents"
    " instead of 2^−127."
)
PREDICTIONS = (
    AtMost("rank_correlation", -0.3, "Spearman's, between frequency and complexity, of functions drawn twice or more."),
    AtLeast("simpler", 1.3, "Mean complexity of coin tosses over that of drawn functions; 1 would be no bias."),
    AtLeast("constant", 1e-3, "The share of constant functions; fair weights would give 2^−127."),
    AtLeast("common_are_simple", 1.3, "Mean complexity of functions drawn once over that of the ten most frequent."),
)
SCOPE = "One architecture, 7 bits, biases of deviation 0.1. That training keeps the bias is not measured here."
BUDGET = 4.0
PRICE, LEAST = 10_000, 2000  # networks that a second of one core buys
BITS, WIDTHS, CHUNK, SOME = 7, (40, 40), 1000, 1000


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Frequencies and complexities of drawn functions."""
    networks, random = buy_trials(budget, PRICE, LEAST), torch.Generator().manual_seed(seed)
    seen: Counter[bytes] = Counter()
    for start in range(0, networks, CHUNK):
        tables = draw_functions(BITS, WIDTHS, min(CHUNK, networks - start), random)
        seen.update(bytes(row) for row in tables.to(torch.uint8).numpy())
    common = [(count, complexity(table)) for table, count in seen.most_common() if count > 1]
    once = [table for table, count in seen.items() if count == 1][:SOME]
    tosses = torch.randint(2, (SOME // 5, 2**BITS), generator=random, dtype=torch.uint8).numpy()
    constant = sum(count for table, count in seen.items() if len(set(table)) == 1)
    single = sum(map(complexity, once)) / len(once)
    twice = sum(count for count, _ in common)
    return {
        "frequency": [count / networks for count, _ in common],
        "complexity": [k for _, k in common],
        "complexity_once": single,
        "complexity_tosses": sum(complexity(bytes(row)) for row in tosses) / len(tosses),
        "complexity_drawn": (sum(count * k for count, k in common) + (networks - twice) * single) / networks,
        "constant": constant / networks,
        "rank_correlation": correlate_ranks([c for c, _ in common], [k for _, k in common]),
        "complexity_top_ten": sum(k for _, k in common[:10]) / 10,
        "functions": len(seen),
        "networks": networks,
    }


def complexity(table: bytes) -> float:
    return lempel_ziv("".join(map(str, table)))


def correlate_ranks(a: list[float], b: list[float]) -> float:
    """Spearman's rank correlation."""
    from scipy.stats import spearmanr

    return float(spearmanr(a, b).statistic)


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    return {
        "rank_correlation": numbers["rank_correlation"],
        "simpler": numbers["complexity_tosses"] / numbers["complexity_drawn"],
        "constant": numbers["constant"],
        "common_are_simple": numbers["complexity_once"] / numbers["complexity_top_ten"],
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Frequency against complexity."""
    fig, (axes,) = make_panels(1)
    x, y = numbers["complexity"], numbers["frequency"]
    axes.semilogy(x, y, "o", ms=3, alpha=0.5, color=COLOURS[0], label="drawn twice or more")
    axes.axvline(numbers["complexity_tosses"], color="0.6", ls=":", label="coin tosses, mean")
    finish(axes, "frequency of a function", "Lempel-Ziv complexity, bits")
    return fig
