"""How much of the books is built: per system and per family, what is claimed, tested and proven.

claimed   a docstring says so
tested    at least one test is marked with the system
proven    it is tested, and every one of those tests passed in the last recorded run
"""

from __future__ import annotations

from dataclasses import dataclass

from descend.catalog.claims import claims
from descend.catalog.proof import proofs
from descend.catalog.systems import families


@dataclass(frozen=True)
class Standing:
    """One system: where it is claimed (path:line), which tests prove it, and whether they passed."""

    claimed: tuple[str, ...]
    tested: tuple[str, ...]
    proven: bool

    @property
    def state(self) -> str:
        """proven, tested (not all tests passed), claimed, or not built yet."""
        if self.tested:
            return "proven" if self.proven else "tested"
        return "claimed" if self.claimed else "not built yet"


@dataclass(frozen=True)
class Count:
    """One family: how many systems it has, and how many of them are claimed, tested and proven."""

    systems: int
    claimed: int
    tested: int
    proven: int


def standings() -> dict[str, dict[str, Standing]]:
    """family -> slug -> Standing, in the order of the list."""
    claimed, proven = claims(), proofs()
    return {
        family: {
            s.slug: Standing(
                claimed=tuple(c.at for c in claimed.get(s.slug, ())),
                tested=proven[s.slug].tests if s.slug in proven else (),
                proven=s.slug in proven and proven[s.slug].passed,
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
        tested=sum(bool(s.tested) for s in values),
        proven=sum(s.proven for s in values),
    )
