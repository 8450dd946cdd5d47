"""Model collapse: each generation learns from what the one before it wrote.

    a language of 2000 words with Zipf's frequencies; a model is the frequencies of the n words that it read
    generation g reads n words written by generation g − 1, or a share of them real ones
    known      the real mass of the rare words (the rarer half) that the model still has        entropy   −Σ p log p
    tail       the mass that the model itself gives to the rare words
    Gaussian   fitted to n draws, drawn from, fitted again: E[σ²_g] = σ² (1 − 1/n)^g

A word that was not written is gone for good: nothing but real text brings it back. What VOM 14.6.1 says in words, that
the tail shrinks, is true of the words and not of their mass: on average the next generation gives a word what this one
gives it, so the mass stays and gathers on the few rare words that are left. Both forms are judged.

Systems: model-collapse
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from descend.labs._evidence import AtLeast, AtMost, Within
from descend.labs._log_lines import Curve, Panel, draw_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.129",)
PRINTED = "Training on a model's own output drifts away from the natural distribution; real data counteract."
CLAIM = "Without real text, rare words and entropy are lost generation by generation; with half of it real, they stay."
PREDICTIONS = (
    AtMost(
        "known after, without real text",
        0.5,
        "half of the rare words' real mass or more is forgotten in 20 generations",
    ),
    AtMost("entropy lost, without real text (nats)", -0.2, "the entropy falls; none lost would refute the collapse"),
    AtLeast(
        "known after, with half real", 0.9, "with half of the text real, nine tenths of what generation 1 knew stays"
    ),
    Within("Gaussian variance over its closed form", 0.9, 1.1, "mean over chains: (1 − 1/n)^g"),
)
PRINTED_PREDICTIONS = (
    AtMost("mass of the tail", 0.8, "the tail's mass shrinks by a fifth or more; it does not if it stays"),
)
SCOPE = "counts as models, 3000 words a generation, 20 generations; networks smooth and filter, counts do not"
BUDGET = 3.0
PRICE = 12  # languages that a second buys
VOCABULARY, READ, GENERATIONS, SHARES = 2000, 3000, 20, (0.0, 0.1, 0.5)
DRAWS, CHAINS, LEAST = 20, 20000, 10

Array = NDArray[np.float64]


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Tail and entropy by generation, means over languages."""
    random = np.random.default_rng(seed)
    languages = max(1, round(PRICE * budget))
    real = 1 / np.arange(1, VOCABULARY + 1)
    real /= real.sum()
    rare = real.cumsum() > 0.5
    columns: dict[str, Any] = {"generation": list(range(GENERATIONS + 1))}
    for share in SHARES:
        runs = np.array([follow(real, rare, share, random) for _ in range(languages)]).mean(0)
        for name, row in zip(("known", "tail", "entropy"), runs.T.tolist(), strict=True):
            columns[f"{name}, {share:.0%} real"] = row
    x = random.standard_normal((CHAINS, DRAWS))
    variance = [1.0]
    for _ in range(GENERATIONS):
        mean, var = x.mean(1, keepdims=True), x.var(1, keepdims=True)
        variance.append(float(var.mean()))
        x = mean + np.sqrt(var) * random.standard_normal((CHAINS, DRAWS))
    exact = [(1 - 1 / DRAWS) ** g for g in range(GENERATIONS + 1)]
    return {**columns, "gaussian": variance, "gaussian, closed form": exact, "languages": languages}


def follow(real: Array, rare: NDArray[np.bool_], share: float, random: np.random.Generator) -> list[list[float]]:
    """(known, tail over its real mass, entropy) of each generation; generation 0 is the real language."""
    model, told = real, []
    for generation in range(GENERATIONS + 1):
        if generation:
            fresh = round(share * READ)
            counts = random.multinomial(READ - fresh, model) + random.multinomial(fresh, real)
            model = counts / READ
        seen = model[model > 0]
        known, tail = (float(mass / real[rare].sum()) for mass in (real[rare & (model > 0)].sum(), model[rare].sum()))
        told.append([known, tail, float(-(seen * np.log(seen)).sum())])
    return told


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    alone = numbers["entropy, 0% real"]
    return {
        "known after, without real text": keep(numbers["known, 0% real"]),
        "entropy lost, without real text (nats)": alone[-1] - alone[0],
        "known after, with half real": keep(numbers["known, 50% real"]),
        "Gaussian variance over its closed form": numbers["gaussian"][-1] / numbers["gaussian, closed form"][-1],
        "mass of the tail": keep(numbers["tail, 0% real"]),
    }


def keep(course: list[float]) -> float:
    """The last generation over the first that a model wrote."""
    return course[-1] / course[1]


def needs(numbers: dict[str, Any]) -> float:
    return 0.0 if numbers["languages"] >= LEAST else LEAST / PRICE


def figure(numbers: dict[str, Any]) -> Figure:
    """Words known, tail and entropy over the generations (counted from 1), and the Gaussian."""
    x = [g + 1 for g in numbers["generation"]]
    panels = [
        Panel(
            what,
            "generation",
            what,
            [Curve(f"{s:.0%} real", x, numbers[f"{what}, {s:.0%} real"]) for s in SHARES],
            "linear",
        )
        for what in ("known", "tail", "entropy")
    ]
    both = [Curve(name, x, numbers[name]) for name in ("gaussian", "gaussian, closed form")]
    return draw_panels([*panels, Panel("variance of a Gaussian", "generation", "variance", both, "linear")])
