"""descend find: the system that a few words mean, and where its code is; and the labs, recipes, verbs and flags."""

from __future__ import annotations

from dataclasses import dataclass

from descend.catalog.claims import claims
from descend.catalog.commands import Thing, search_things, split_kind
from descend.catalog.coverage import Standing
from descend.catalog.demands import demands
from descend.catalog.proof import Proof, proofs
from descend.catalog.search import search, squeeze, systems_by_name
from descend.catalog.source import forms
from descend.catalog.systems import System
from descend.errors import Mistake

MARKS = {
    "whole": ("✓", "green"),
    "core": ("◐", "green"),
    "tested": ("✗", "red"),
    "claimed": ("·", "yellow"),
    "not built yet": (" ", "dim"),
    "": ("→", "cyan"),
}


@dataclass(frozen=True)
class Found:
    """A system, where its code is (path:line, empty while nobody has built it), and its state.

    A lab, recipe, verb or flag has that as its family, no state, and the command that calls it.
    """

    slug: str
    name: str
    family: str
    at: tuple[str, ...]
    state: str
    call: str


def find(words: str, limit: int = 10) -> list[Found]:
    """What fits the words best, best first; spelling need not be right.

    Systems of the books come before labs, recipes, verbs and flags, unless the words ask for one of these by its kind
    ("early stopping flag").

    Args:
        words: what to look for, such as "grouped query".
        limit: how many at most.
    """
    kind, rest = split_kind(words)
    if kind and (things := search_things(rest, kind, limit)):
        return [show_thing(thing) for thing in things] + show_systems(search(rest, limit - len(things)))
    systems, things = search(words, limit), search_things(words, limit=limit)
    room = max(limit - len(systems), min(len(things), limit // 3))
    shown = [show_thing(thing) for thing in things[:room]]
    if shown and squeeze(shown[0].slug) == squeeze(words) and not systems_by_name().get(squeeze(words)):
        return shown + show_systems(systems[: limit - len(shown)])  # a verb, lab or recipe, called by its name
    return show_systems(systems[: limit - room]) + shown


def show_systems(systems: list[System]) -> list[Found]:
    """With their places, the standard form first, and what is proven of them."""
    claimed, proven = claims(only={s.slug for s in systems}), proofs()
    found = []
    for s in systems:
        own = claimed.get(s.slug, [])
        built = forms(s.slug, own)
        at = tuple(dict.fromkeys(code.at for code in (*built.standard, *built.fast, *built.more)))
        standing = Standing(at, proven.get(s.slug, Proof()), tuple(demands().get(s.slug, ())))
        found.append(Found(s.slug, s.name, s.family, at, standing.state, f"descend explain {s.slug}"))
    return found


def show_thing(thing: Thing) -> Found:
    return Found(thing.name, thing.text, thing.kind, (thing.at,) if thing.at else (), "", thing.call)


def command(words: tuple[str, ...], /, *, limit: int = 10) -> None:
    """Find an equation, a layer, a loss or a model by a few words; also labs, recipes, verbs and flags. Typos are fine.

    Args:
        words: what to look for.
        limit: how many to show at most.

    Examples:
        descend find grouped query
        descend find sdpa
        descend find layer norm --limit 3
        descend find early stopping flag
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
        slug = (f.slug.ljust(wide), "bold" if f.at or not f.state else "dim")
        console.print(Text.assemble((f"{mark} ", style), slug, f"  {f.name} ", (f"({f.family})", "dim")))
        places = ", ".join(f.at)
        below = (places or "not built yet") if f.state else f"{f.call}   {places}".rstrip()
        console.print(Text(f"  {'':<{wide}}  {below}", "cyan" if f.at or not f.state else "dim"))
    legend = "✓ proven whole  ◐ proven in its core  ✗ tested, not all passed  · claimed  → lab, recipe, verb or flag"
    console.print(Text(f"{legend}   more: descend explain SLUG", "dim"))
