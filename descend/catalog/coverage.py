"""How much of the books is built: per system and per family, what is claimed, and proven in its core or as a whole.

claimed   a docstring says so
core      the system's numbers agree: its core has tests, and every one passed in the last recorded run
whole     the core is proven, and so is every demand of its row (`demands.py`); a row without demands is never whole
"""

from __future__ import annotations

from dataclasses import dataclass

from descend.catalog.claims import claims
from descend.catalog.demands import demands
from descend.catalog.proof import Proof, proofs
from descend.catalog.systems import families


@dataclass(frozen=True)
class Standing:
    """One system: where it is claimed (path:line), what its tests prove, and what its row asks for."""

    claimed: tuple[str, ...]
    proof: Proof
    demands: tuple[str, ...]

    @property
    def core(self) -> bool:
        return self.proof.proves()

    @property
    def open(self) -> tuple[str, ...]:
        """The demands that nothing proves yet, in the order of the row."""
        return tuple(demand for demand in self.demands if not self.proof.proves(demand))

    @property
    def whole(self) -> bool:
        return self.core and bool(self.demands) and not self.open

    @property
    def state(self) -> str:
        """whole, core, tested (not all tests passed, or none of the core), claimed, or not built yet."""
        if self.whole:
            return "whole"
        if self.core and not self.proof.failed:
            return "core"
        if self.proof.tests:
            return "tested"
        return "claimed" if self.claimed else "not built yet"


@dataclass(frozen=True)
class Count:
    """One family: how many systems it has, and how many are claimed, proven in their core, and proven as a whole."""

    systems: int
    claimed: int
    core: int
    whole: int


def standings() -> dict[str, dict[str, Standing]]:
    """family -> slug -> Standing, in the order of the list."""
    claimed, proven = claims(), proofs()
    return {
        family: {
            s.slug: Standing(
                claimed=tuple(c.at for c in claimed.get(s.slug, ())),
                proof=proven.get(s.slug, Proof()),
                demands=tuple(demands().get(s.slug, ())),
            )
            for s in members
        }
        for family, members in families().items()
    }


def count(members: dict[str, Standing]) -> Count:
    """The counts of one family, or of any other set of systems."""
    values = members.values()
    return Count(
        systems=len(values),
        claimed=sum(bool(s.claimed) for s in values),
        core=sum(s.core for s in values),
        whole=sum(s.whole for s in values),
    )
