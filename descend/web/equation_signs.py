"""The signs of an equation in plain Unicode, one after the other: numbers, letters, names, scripts, operators.

x̂_t = √(v / n)²     ->     letter x̂, under t, operator =, sign √, open (, letter v, operator /, ..
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

NUMBER = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?!\d)|\d+(?:\.\d+)?(?:e[−-]?\d+)?")
NAME = re.compile(r"[A-Za-z]+\d*")
ACCENTS = {"\u0302": "^", "\u0303": "~", "\u0304": "¯", "\u0305": "¯", "\u0307": "˙"}
FRACTIONS = "½¼¾⅓⅔"
OPEN, CLOSE = "([{⌊⌈⟨", ")]}⌋⌉⟩"
PAIRS = dict(zip(OPEN, CLOSE, strict=True))
SUMS, BARS = "ΣΠ∫", "|‖"
RELATIONS = "=≠≤≥<>≈∝~∈∉⊂←→↦⇒⇔≻≡"
ADDED, TIMES = "+−±", "·×⊙∘⋆⊗"
OTHER = "∪∩…⋯"
MARKS = ",;:"
LETTERS = "∂∇Δ∆ℓ∞ℝ∅"
REPLACED = {"->": "→", "<-": "←", "=>": "⇒", "<=": "≤", ">=": "≥", "..": "..", "...": "…"}
CALLED = frozenset(
    ("log", "ln", "log2", "exp", "sin", "cos", "tan", "tanh", "sinh", "cosh", "arctan", "erf", "max", "min", "argmax",
     "argmin", "arg", "sup", "inf", "lim", "mean", "sum", "var", "Var", "Cov", "std", "det", "tr", "Tr", "trace",
     "diag", "rank", "sign", "sgn", "softmax", "softmin", "relu", "ReLU", "gelu", "sigmoid", "round", "floor", "clip",
     "mod", "dim", "span", "Lip", "norm", "rowsum", "Re", "Im", "gcd", "deg")
)  # fmt: skip
LIMITS = frozenset(("max", "min", "argmax", "argmin", "sup", "inf", "lim"))
JOINING = frozenset(
    ("for", "if", "else", "where", "with", "and", "or", "otherwise", "when", "odd", "even", "all", "from", "to", "in",
     "then", "each", "every", "any", "is", "not", "iff", "on", "at")
)  # fmt: skip

PROSE = frozenset(("it", "of", "by", "so", "we", "no", "as", "be", "an", "do", "up", "us", "its"))


class UnreadableError(Exception):
    """The line is not an equation, or it can be read in two ways."""


@dataclass(frozen=True)
class Sign:
    """`kind`: number, letter, name, word, over, under (scripts), raise, lower (^ and _), prime, open, close, bar, sum,
    root, relation, added, times, other, mark, slash, dot. `space`: whether a space stands before it."""

    kind: str
    text: str
    space: bool
    accent: str = ""


def read_signs(text: str) -> list[Sign]:
    """The signs, or UnreadableError."""
    found: list[Sign] = []
    place, space = 0, False
    while place < len(text):
        if text[place] == " ":
            place, space = place + 1, True
            continue
        sign, place = read_sign(text, place, space)
        found.append(sign)
        space = False
    return found


def read_sign(text: str, at: int, space: bool) -> tuple[Sign, int]:
    """The sign that begins here, and where the next one may begin."""
    for size in (3, 2):
        if found := REPLACED.get(text[at : at + size]):
            return Sign("relation" if found in RELATIONS or found == "+=" else "other", found, space), at + size
    if match := NUMBER.match(text, at):
        return Sign("number", match[0], space), match.end()
    if (script := script_of(text[at])) in ("over", "under"):
        end = at
        while end < len(text) and script_of(text[end]) == script:
            end += 1
        return Sign(script, unicodedata.normalize("NFKD", text[at:end]), space), end
    if (letter := read_letter(text, at, space)) is not None:
        return letter
    char = text[at]
    for kind, chars in KINDS.items():
        if char in chars:
            return Sign(kind, char, space), at + 1
    if char == "-" and (joins_numbers(text, at) or text[at - 1 : at + 2] == " - "):
        return Sign("added", "−", space), at + 1
    raise UnreadableError(char)


KINDS = {
    "raise": "^", "lower": "_", "prime": "'′", "open": OPEN, "close": CLOSE, "bar": BARS, "sum": SUMS, "root": "√",
    "relation": RELATIONS, "added": ADDED, "times": TIMES, "other": OTHER, "mark": MARKS, "slash": "/", "star": "*",
}  # fmt: skip


def script_of(char: str) -> str:
    """over, under, or nothing."""
    written = unicodedata.decomposition(char)
    return "over" if written.startswith("<super>") else "under" if written.startswith("<sub>") else ""


def read_letter(text: str, at: int, space: bool) -> tuple[Sign, int] | None:
    """A letter with its accent, a name of several letters, a word that joins, or ½."""
    if text[at] in FRACTIONS:
        return Sign("number", text[at], space), at + 1
    if match := NAME.match(text, at):
        end = match.end()
        if end < len(text) and text[end] in ACCENTS:
            end -= 1  # its last letter has an accent, and is one by itself
        if end - at > 1:
            kind = "word" if text[at:end] in JOINING else "name"
            return Sign(kind, text[at:end], space), end
    plain = unicodedata.normalize("NFD", text[at])
    if not (plain[0].isalpha() or plain[0] in LETTERS) or text[at] in SUMS:
        return None
    marks = plain[1:]
    end = at + 1
    while end < len(text) and unicodedata.combining(text[end]):
        marks, end = marks + text[end], end + 1
    if len(marks) > 1 or any(mark not in ACCENTS for mark in marks):
        raise UnreadableError(text[at:end])
    return Sign("letter", plain[0], space, ACCENTS[marks] if marks else ""), end


def joins_numbers(text: str, at: int) -> bool:
    """Whether a hyphen without spaces stands between numbers or single letters, as in l-1: it is a minus there."""
    before, after = text[:at], text[at + 1 :]
    return bool(
        re.search(r"(?:^|[^A-Za-z])[A-Za-z]$|[\d)]$", before) and re.match(r"[A-Za-z](?![A-Za-z])|[\d(]", after)
    )
