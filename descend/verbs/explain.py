"""descend explain: an equation, its code, and the books' numbers computed again at this moment."""

from __future__ import annotations

import json as json_module
import os
import sys
from pathlib import Path

from descend.catalog.explanation import Explanation, explanation
from descend.errors import Mistake


def explain(slug: str) -> Explanation:
    """All that is known about one system of the books. A notebook shows it as a page.

    Args:
        slug: the system, as `descend find` prints it, or another name of it.

    `explain(slug).as_json()` and `descend explain SLUG --json` give

        slug, name, family, kind, depth, note, entries    the row of the list
        state        "whole" (every demand proven), "core" (its numbers agree), "tested" (not all tests passed),
                     "claimed" or "not built yet"
        plain        two sentences in everyday words: what it is, and what it is for
        code         [{path, line, symbol, equation, pieces: [{line, text}]}]      the standard form
        fast         the same, of the form that training runs; empty where that is the standard form
        more         [{path, line, symbol}]      where else it is built
        books        [{entry, name, kind, places: [{book, title, section}], defines}]
        examples     [{id, system, book, section, title, inputs, computation, printed, recomputed, verdict, note,
                       state: "agrees" | "differs" | "failed" | "set aside" | "not written yet", reason, erratum,
                       values: [{key, printed, recomputed, ours, agree: true | false | null, reason}]}]
        demands      [{demand, text, tests: [...], proven}]      what the row asks for; those not proven are open
        proof        {tests: [...], passed, core: [...], demands: {demand: [...]}, failed: [...]}
    """
    return explanation(slug)


def command(slug: str, /, *, json: bool = False, html: Path | None = None) -> None:
    """Show a system: what it is in everyday words, its equation and code, the books' examples computed now, its tests.

    Args:
        slug: the system, as descend find prints it, or another name of it.
        json: print JSON.
        html: write a page to this file instead.

    Examples:
        descend explain scaled-dot-product-attention
        descend explain gpt-2 --html gpt2.html
        descend explain layer-normalization
        descend explain perplexity --json
    """
    found = explain(slug)
    if html is not None:
        from descend.catalog.page import make_explanation_page

        try:
            html.write_text(make_explanation_page(found), encoding="utf-8")
        except OSError as error:
            raise Mistake(f"--html {html}: {error.strerror}") from None
        print(html)
    elif json:
        print(json_module.dumps(found.as_json(), indent=1, ensure_ascii=False))
    else:
        from rich.console import Console

        from descend.catalog.terminal import print_explanation

        # A pipe has no width of its own: it gets one that no line of code needs to be broken for.
        piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
        print_explanation(found, Console(highlight=False, width=128 if piped else None))
