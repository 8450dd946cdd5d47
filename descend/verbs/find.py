"""descend find: the system that a few words mean, and where its code is."""

from __future__ import annotations

from dataclasses import dataclass

from descend.catalog.claims import claims
from descend.catalog.coverage import Standing
from descend.catalog.demands import demands
from descend.catalog.proof import Proof, proofs
from descend.catalog.search import search
from descend.errors import Mistake

MARKS = {
    "whole": ("✓", "green"),
    "core": ("◐", "green"),
    "tested": ("✗", "red"),
    "claimed": ("·", "yellow"),
    "not built yet": (" ", "dim"),
}


@dataclass(frozen=True)
class Found:
    """A system, where its code is (path:line, empty while nobody has built it), and its state."""

    slug: str
    name: str
    family: str
    at: tuple[str, ...]
    state: str


def find(words: str, limit: int = 10) -> list[Found]:
    """The systems of the books that fit the words best, best first; spelling need not be right.

    Args:
        words: what to look for, such as "grouped query".
        limit: how many at most.
    """
    systems = search(words, limit)
    claimed, proven = claims(only={s.slug for s in systems}), proofs()
    found = []
    for s in systems:
        at, asked = tuple(c.at for c in claimed.get(s.slug, ())), tuple(demands().get(s.slug, ()))
        found.append(Found(s.slug, s.name, s.family, at, Standing(at, proven.get(s.slug, Proof()), asked).state))
    return found


def command(words: tuple[str, ...], /, *, limit: int = 10) -> None:
    """Find an equation, a layer, a loss or a model by a few words. Typos are tolerated.

    Args:
        words: what to look for.
        limit: how many to show at most.

    Examples:
        descend find grouped query
        descend find sdpa
        descend find layer norm --limit 3
    """
    from rich.console import Console
    from rich.text import Text

    text = " ".join(words)
    if not text.strip():
        raise Mistake("say what to look for, for example: descend find grouped query")
    found = find(text, limit)
    if not found:
        raise Mistake(f"nothing matches {text!r}. Try other words, or descend coverage for the list of families")
    console = Console(highlight=False, soft_wrap=True)
    wide = max(len(f.slug) for f in found)
    for f in found:
        mark, style = MARKS[f.state]
        slug = (f.slug.ljust(wide), "bold" if f.at else "dim")
        console.print(Text.assemble((f"{mark} ", style), slug, f"  {f.name} ", (f"({f.family})", "dim")))
        console.print(Text(f"  {'':<{wide}}  {', '.join(f.at) or 'not built yet'}", "cyan" if f.at else "dim"))
    legend = "✓ proven whole  ◐ proven in its core  ✗ tested, not all passed  · claimed"
    console.print(Text(f"{legend}   more: descend explain SLUG", "dim"))
