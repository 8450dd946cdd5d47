"""Grid search and random search over hyperparameters.

    grid      every combination of the listed values, once: m · n · p trainings for lists of m, n and p values
    random    N trials, h ~ p(h), each value on its own:
              uniform        h = a + u (b − a)            u ~ U[0, 1)
              log-uniform    h = a (b/a)^u                equal chance for every order of magnitude

Both keep the best. A prior is its quantile function, u in [0, 1] to a value: random search puts random u in, a grid
evenly spaced ones. Trial i of a random search is a function of the seed and i alone, so a longer search begins with the
shorter one and an interrupted search continues as if it had not stopped.

The book (MF 13.3) names no distribution for whole numbers: here each of them has the same width (or, by orders of
magnitude, the width of its half-open neighbourhood [k − ½, k + ½)), as in Optuna.

Systems: grid-and-random-search
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Values = dict[str, Any]


class Prior(Protocol):
    """Where a value may lie, as a quantile function."""

    def at(self, u: float) -> Any: ...

    def points(self, count: int) -> list[Any]: ...


def evenly(count: int) -> list[float]:
    """0, 1/(n−1), …, 1; the middle for a single one."""
    return [i / (count - 1) for i in range(count)] if count > 1 else [0.5]


@dataclass(frozen=True)
class Uniform:
    """h = a + u (b − a)."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise ValueError(f"{self.low} .. {self.high}: the first number must be the smaller one")

    def at(self, u: float) -> float:
        return min(self.low + u * (self.high - self.low), self.high)

    def points(self, count: int) -> list[float]:
        return [self.at(u) for u in evenly(count)]


@dataclass(frozen=True)
class LogUniform:
    """h = a (b/a)^u."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high < math.inf:
            raise ValueError(f"{self.low} .. {self.high}: orders of magnitude need 0 < first < second")

    def at(self, u: float) -> float:
        return min(max(self.low * (self.high / self.low) ** u, self.low), self.high)

    def points(self, count: int) -> list[float]:
        return [self.at(u) for u in evenly(count)]


@dataclass(frozen=True)
class Whole:
    """The whole numbers a, a+1, …, b, each with the same chance."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"{self.low} .. {self.high}: the first number must be the smaller one")

    def at(self, u: float) -> int:
        return min(self.low + int(u * (self.high - self.low + 1)), self.high)

    def points(self, count: int) -> list[int]:
        return unique(round(self.low + u * (self.high - self.low)) for u in evenly(count))


@dataclass(frozen=True)
class LogWhole:
    """The whole numbers a..b by orders of magnitude: log-uniform on [a − ½, b + ½), rounded."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high:
            raise ValueError(f"{self.low} .. {self.high}: orders of magnitude need 0 < first < second")

    def at(self, u: float) -> int:
        a, b = self.low - 0.5, self.high + 0.5
        return min(max(math.floor(a * (b / a) ** u + 0.5), self.low), self.high)

    def points(self, count: int) -> list[int]:
        return unique(round(self.low * (self.high / self.low) ** u) for u in evenly(count))


@dataclass(frozen=True)
class Choice:
    """One of the listed values, each with the same chance."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.values or len(set(self.values)) != len(self.values):
            raise ValueError(f"{', '.join(map(str, self.values)) or 'nothing'}: list each value once")

    def at(self, u: float) -> Any:
        return self.values[min(int(u * len(self.values)), len(self.values) - 1)]

    def points(self, count: int) -> list[Any]:
        return list(self.values)


def unique(values: Iterable[int]) -> list[int]:
    """Each value once, in their order."""
    return list(dict.fromkeys(values))


def grid(lists: Mapping[str, Sequence[Any]]) -> list[Values]:
    """Every combination once; the last name changes fastest."""
    return [dict(zip(lists, chosen, strict=True)) for chosen in itertools.product(*lists.values())]


def draw(priors: Mapping[str, Prior], seed: int, trial: int) -> Values:
    """The values of one trial of a random search."""
    u = np.random.default_rng([seed, trial]).random(len(priors))
    return {name: prior.at(float(v)) for (name, prior), v in zip(priors.items(), u, strict=True)}


@dataclass(frozen=True)
class Row:
    """A trial of the results table."""

    values: Values
    score: float


def search(combinations: Iterable[Values], objective: Callable[[Values], float]) -> list[Row]:
    """The results table, the lowest score first; equal scores keep the order of their trials."""
    return sorted((Row(values, objective(values)) for values in combinations), key=lambda row: row.score)


def grid_search(lists: Mapping[str, Sequence[Any]], objective: Callable[[Values], float]) -> list[Row]:
    """Try every combination; the first row is the best."""
    return search(grid(lists), objective)


def random_search(
    priors: Mapping[str, Prior], objective: Callable[[Values], float], trials: int, seed: int = 0
) -> list[Row]:
    """Try N random draws; the first row is the best."""
    return search((draw(priors, seed, i) for i in range(trials)), objective)
