"""All that is known about one system, gathered: everyday words, code, books, worked examples run now, tests."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from descend.catalog.claims import claims
from descend.catalog.coverage import Standing
from descend.catalog.demands import demands
from descend.catalog.plain import plain_words
from descend.catalog.proof import Proof, proofs
from descend.catalog.run import Outcome, run
from descend.catalog.search import resolve
from descend.catalog.source import Code, forms
from descend.catalog.systems import BOOKS, System, entries, examples_of


@dataclass(frozen=True)
class Place:
    """A section of a book."""

    book: str
    title: str
    section: str


@dataclass(frozen=True)
class Passage:
    """What a book says: where, and the definition in plain text."""

    entry: str
    name: str
    kind: str
    places: tuple[Place, ...]
    defines: str


@dataclass(frozen=True)
class Asked:
    """A demand of the row, the tests that prove it, and whether they do."""

    demand: str
    text: str
    tests: tuple[str, ...]
    proven: bool


@dataclass(frozen=True)
class Explanation:
    """One system. `as_json` is the schema of `descend explain --json`; a notebook shows it as a page."""

    system: System
    plain: str
    state: str
    code: tuple[Code, ...]
    fast: tuple[Code, ...]
    more: tuple[Code, ...]
    books: tuple[Passage, ...]
    examples: tuple[Outcome, ...]
    demands: tuple[Asked, ...]
    proof: Proof

    def as_json(self) -> dict[str, Any]:
        return {
            **asdict(self.system),
            "plain": self.plain,
            "state": self.state,
            "code": [asdict(c) for c in self.code],
            "fast": [asdict(c) for c in self.fast],
            "more": [{"path": c.path, "line": c.line, "symbol": c.symbol} for c in self.more],
            "books": [asdict(b) for b in self.books],
            "examples": [outcome_as_json(o) for o in self.examples],
            "demands": [asdict(d) for d in self.demands],
            "proof": {"tests": self.proof.tests, "passed": self.proof.passed, **asdict(self.proof)},
        }

    def _repr_html_(self) -> str:
        from descend.catalog.page import make_article

        return make_article(self)


def outcome_as_json(outcome: Outcome) -> dict[str, Any]:
    """An example and how it went; `inputs` and `printed` as the book has them."""
    state = {"state": outcome.state, "reason": outcome.reason, "erratum": outcome.erratum}
    return {**asdict(outcome.example), **state, "values": [asdict(v) for v in outcome.values]}


def explanation(name: str) -> Explanation:
    """Gather it; the worked examples are computed at this moment."""
    found = resolve(name)
    slug = found.slug
    claimed = claims(only={slug}).get(slug, [])
    proof = proofs().get(slug, Proof())
    asked = demands().get(slug, {})
    standing = Standing(tuple(c.at for c in claimed), proof, tuple(asked))
    built = forms(slug, claimed)
    return Explanation(
        system=found,
        plain=plain_words().get(slug, ""),
        state=standing.state,
        code=built.standard,
        fast=built.fast,
        more=built.more,
        books=tuple(passage(entry) for entry in found.entries),
        examples=tuple(run(example) for example in examples_of(slug)),
        demands=tuple(
            Asked(d.name, d.text, proof.demands.get(d.name, ()), proof.proves(d.name)) for d in asked.values()
        ),
        proof=proof,
    )


def passage(entry: str) -> Passage:
    """An entry of the books, with the books' titles spelled out."""
    e = entries()[entry]
    places = tuple(Place(book, BOOKS[book], section) for book, section in e.places)
    return Passage(e.id, e.name, e.kind, places, e.defines)


def tally(e: Explanation) -> str:
    """How the worked examples went: "computed now: all 15 agree", or "3 agree, 1 set aside"."""
    counts = Counter(o.state for o in e.examples)
    n = len(e.examples)
    if counts["agrees"] == n:
        return "computed now: " + {1: "it agrees", 2: "both agree"}.get(n, f"all {n} agree")
    verbs = {"agrees": "agree", "differs": "differ"}
    now = "computed now: " if counts.keys() & {"agrees", "differs", "failed"} else ""
    return now + ", ".join(f"{k} {verbs.get(state, state)}" for state, k in counts.items())


def count_open(e: Explanation) -> str:
    """How much of the row is proven: "all 5 proven", or "2 of 5 open"."""
    n, missing = len(e.demands), sum(not d.proven for d in e.demands)
    return f"{missing} of {n} open" if missing else f"all {n} proven"


def show_inputs(inputs: dict[str, Any], longest: int) -> str:
    """The inputs of an example as one line, whole unless it would fill the screen."""
    text = ", ".join(f"{key} = {digits(value)}" for key, value in inputs.items())
    return text if len(text) <= longest else f"{text[:longest]}…"


def lines(value: Any) -> list[str]:
    """A value for a table cell: a matrix has a line for each row, anything else is one line."""
    if isinstance(value, list) and len(value) > 1 and all(isinstance(row, list) for row in value):
        return [digits(row) for row in value]
    return [digits(value)]


def digits(value: Any) -> str:
    """Numbers with at most six significant digits; whole numbers and words as they are."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "[" + ", ".join(digits(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {digits(v)}" for k, v in value.items()) + "}"
    return value if isinstance(value, str) else json.dumps(value)
