"""How much text there is for a model, and what to do when it is not enough.

    wanted        20 N tokens                 epochs = wanted / unique tokens
    largest N     unique tokens / 20          5-15T tokens of good text: 250-750B parameters

Supplies of VOM 14.6.1 in tokens: Common Crawl 100T raw, 10-20T filtered; books 0.1T; code trillions; PubMed billions;
Llama 2 was trained on 2T; video holds about 100 times as much as text. Inconsistent: the whole pool of good text is put
at 5-15T, less than the 10-20T of its web part alone (`check_pools`).

More than 4 epochs are said to teach little (the book: diminishing after 2-4); the lab `repeated-data` measures it.

Systems: data-constraints-and-epochs
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from descend.errors import Mistake
from descend.theory.compute_optimal import TOKENS

POOLS = MappingProxyType(
    {
        "common crawl, raw": (100e12, 100e12),
        "web, filtered": (10e12, 20e12),
        "books": (0.1e12, 0.1e12),
        "good text in all": (5e12, 15e12),
        "llama 2": (2e12, 2e12),
    }
)
"""Tokens, from and to."""
WORTH = 4.0
"""Epochs up to which repeating is said to help: VOM 14.6.1."""


@dataclass(frozen=True)
class Supply:
    """A model's demand against the tokens there are."""

    parameters: float
    unique: float

    def __post_init__(self) -> None:
        if not (self.parameters > 0 and self.unique > 0):
            raise Mistake(f"{self.parameters:g} parameters and {self.unique:g} tokens: both must be above 0")

    @property
    def wanted(self) -> float:
        """20 N tokens."""
        return TOKENS * self.parameters

    @property
    def epochs(self) -> float:
        """How often the data would be read; below 1 there is more than is needed."""
        return self.wanted / self.unique

    @property
    def largest(self) -> float:
        """Parameters of the largest model that this supply trains at the optimum without repeating."""
        return self.unique / TOKENS

    def advise(self) -> list[str]:
        """The strategies of VOM 14.6.1 that are open, cheapest first."""
        if self.epochs <= 1:
            return ["train: the data suffice without repeating any of them"]
        repeated = f"repeat the data: {self.epochs:.3g} epochs"
        found = [repeated if self.epochs <= WORTH else f"{repeated}, more than the {WORTH:g} that are said to help"]
        found += [f"train a smaller model: {self.largest:.3g} parameters need no repeating"]
        return [
            *found,
            "write synthetic data, beside real ones: alone they collapse",
            "add other modalities, or buy data",
        ]


def check_pools(parts: Sequence[tuple[float, float]], total: tuple[float, float]) -> bool:
    """Whether the whole can be as large as its parts together: each end of the ranges."""
    return all(total[end] >= sum(part[end] for part in parts) for end in (0, 1))
