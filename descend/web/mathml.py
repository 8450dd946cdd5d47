"""The elements of an equation as MathML, and how they stand beside each other.

A slash is stacked only where both sides are certain. Tight, `a/2σ²`: what stands tight on its left and right. With
spaces, `η g / (√v + ε)`: the product before it and one group after it, where nothing else follows that could belong to
the denominator, and no sum or function before it whose end is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from descend.web.markup import Html, html

THIN = Html('<mspace width="0.22em"></mspace>')
WORD = Html('<mspace width="0.5em"></mspace>')
BLUNT = ("relation", "added", "times", "other", "mark", "slash", "bar", "word")
ENDS = ("relation", "mark", "word", "bar")


@dataclass(frozen=True)
class Item:
    """A part of a row. `kind`: atom, called (a function's name), sum, or that of a sign; `inner`: what round brackets
    hold; `head`: its first sign."""

    kind: str
    text: Html
    space: bool = False
    inner: Html | None = None
    head: str = ""


def element(tag: str, *parts: object) -> Html:
    return html("<{}>{}</{}>", tag, list(parts), tag)


def row(parts: Sequence[Html]) -> Html:
    """Parts as one."""
    return parts[0] if len(parts) == 1 else element("mrow", *parts)


def operator(text: str, **said: str) -> Html:
    named = [html(' {}="{}"', name, value) for name, value in said.items()]
    return html("<mo{}>{}</mo>", named, text)


def bracket(left: str, inner: Html, right: str) -> Html:
    """Brackets around it, that grow only around what is taller than a line."""
    grows = "true" if "<mfrac" in inner or "<munder" in inner else "false"
    return element("mrow", operator(left, stretchy=grows), inner, operator(right, stretchy=grows))


def join_items(items: Sequence[Item]) -> list[Html]:
    """A row's parts, with the spaces that the source has between factors."""
    parts: list[Html] = []
    before: Item | None = None
    for item in items:
        if before is not None and item.space:
            if "word" in (item.kind, before.kind):
                parts.append(WORD)
            elif before.kind not in BLUNT and item.kind not in BLUNT:
                parts.append(THIN)
        if item.kind == "added":
            sign = before is None or before.kind in (*BLUNT, "sum", "called")
            parts.append(operator(str(item.text), form="prefix" if sign else "infix"))
        else:
            parts.append(item.text)
        before = item
    return parts


def stack_fractions(items: list[Item]) -> list[Item]:
    """The row with its fractions stacked, the tight ones first."""
    at = 0
    while at < len(items):
        if items[at].kind == "slash" and (sides := find_tight(items, at)):
            items, at = put_fraction(items, at, *sides)
        at += 1
    at = 0
    while at < len(items):
        if items[at].kind == "slash" and (sides := find_spaced(items, at)):
            items, at = put_fraction(items, at, *sides)
        at += 1
    return items


def put_fraction(items: list[Item], at: int, first: int, last: int) -> tuple[list[Item], int]:
    """items[first:at] over items[at + 1:last]; also where it stands then."""
    over, under = items[first:at], items[at + 1 : last]
    made = Item("atom", element("mfrac", unwrap(over), unwrap(under)), over[0].space, head=over[0].head)
    return [*items[:first], made, *items[last:]], first


def unwrap(items: list[Item]) -> Html:
    """Brackets around the whole of a side are not needed."""
    return items[0].inner if len(items) == 1 and items[0].inner is not None else row(join_items(items))


def find_tight(items: list[Item], at: int) -> tuple[int, int] | None:
    """Where the sides of a slash begin and end, if no space is beside it."""
    if at + 1 >= len(items) or items[at].space or items[at + 1].space:
        return None
    first = at
    while first and is_factor(items, first - 1) and (first == at or not items[first].space):
        first -= 1
    last = at + 1
    while last < len(items) and is_factor(items, last) and (last == at + 1 or not items[last].space):
        last += 1
    if first == at or last == at + 1 or items[last - 1].head == "∂":  # ∂ℓ/∂ log x: of what, only the reader knows
        return None
    if items[first].head.startswith("∂") and items[at + 1].head.startswith("∂"):  # ∂²E/∂θ_i ∂θ_j
        while last < len(items) and items[last].head.startswith("∂"):
            last += 1
            while last < len(items) and is_factor(items, last) and not items[last].space:
                last += 1
    before = items[first - 1] if first else None
    if before is not None and (before.kind in ("called", "slash", "times") and not is_bare(before, items[first])):
        return None
    after = items[last] if last < len(items) else None
    if after is not None and (after.kind in ("times", "slash") and not after.space):
        return None
    return first, last


def is_bare(before: Item, item: Item) -> bool:
    """Whether a product sign stands apart from what follows it: then the fraction is a factor of its own."""
    return before.kind == "times" and item.space


def find_spaced(items: list[Item], at: int) -> tuple[int, int] | None:
    """The same of a slash between spaces."""
    if not 0 < at < len(items) - 1 or not items[at].space or not items[at + 1].space:
        return None
    first = at
    while first and (is_factor(items, first - 1) or items[first - 1].kind == "times"):
        first -= 1
    before = items[first - 1].kind if first else ""
    if first == at or items[first].kind == "times" or before in ("called", "sum", "slash", "other"):
        return None
    last = at + 1
    if items[last].kind == "sum":
        last += 1
        while last < len(items) and is_factor(items, last):
            last += 1
        ended = last == len(items) or items[last].kind in ENDS
        return (first, last) if ended and last > at + 2 else None
    while last < len(items) and is_factor(items, last) and (last == at + 1 or not items[last].space):
        last += 1
    if last == at + 1 or (last < len(items) and items[last].kind not in (*ENDS, "added")):
        return None
    return first, last


def is_factor(items: list[Item], at: int) -> bool:
    """Whether it is a factor whose end is known: a function's name only with its brackets behind it."""
    item = items[at]
    if item.kind == "called":
        return at + 1 < len(items) and not items[at + 1].space and items[at + 1].inner is not None
    return item.kind == "atom"
