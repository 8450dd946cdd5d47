"""An explanation as one HTML page: no script, no font and no image from elsewhere, readable in light and dark."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from descend.catalog.explanation import Explanation, count_open, lines, show_inputs, tally
from descend.catalog.run import Outcome, Value
from descend.catalog.source import Code
from descend.web.equation import typeset_block
from descend.web.markup import Html, html, join
from descend.web.page import make_fragment, make_page
from descend.web.parts import make_card, make_note

STYLE = """
.descend { main > h2 { font-size: 19px; margin: 34px 0 12px; } .plain { font-size: 17px; max-width: 48rem; }
  .math { padding: 12px 18px; margin: 0 0 10px; border-left: 3px solid var(--c0); border-radius: 0 8px 8px 0;
    background: var(--page); font: 13.5px/1.7 var(--mono); white-space: pre; overflow-x: auto; }
  .math span { display: inline-block; } .math span + span:last-child { padding-right: 18px; }
  math { font-family: "Latin Modern Math", "STIX Two Math", "Cambria Math", "DejaVu Math TeX Gyre", math, serif;
    font-size: 1.2em; } mi.slanted { font-style: italic; }
  .card > p { max-width: 52rem; margin: 10px 0; } .at { color: var(--c0); font-size: 13px; font-weight: 500; }
  .highlight pre { border: 1px solid var(--line); background: none; white-space: pre; overflow-x: auto;
    max-height: none; line-height: 1.5; }
  .linenos { user-select: none; }
  .card.erratum { background: var(--warn-page); border-color: var(--warn); }
  .example { td { font-family: var(--mono); font-size: 12.5px; white-space: pre-wrap; }
    td.key { color: var(--soft); } td.mark { font: inherit; min-width: 5rem; } }
  .demands { list-style: none; padding: 0; margin: 0; li { margin: 5px 0; } .state { margin: 0 6px 0 0; } }
  .highlight, .highlight .err { background: none; border: none; }
  .highlight .linenos { color: var(--soft); background: none; opacity: .65; padding: 0 1em 0 0; }
  .highlight .sd { color: var(--c0); font-style: normal; } }
"""
LONGEST = 2000  # characters of an example's inputs
TONES = {"whole": "good", "core": "good", "tested": "bad", "agrees": "good", "differs": "bad", "failed": "bad"}
MARKS = {True: ("good", "✓"), False: ("bad", "differs"), None: ("", "")}


def make_explanation_page(e: Explanation) -> Html:
    """The whole document."""
    return make_page(e.system.name, make_body(e))


def make_article(e: Explanation) -> Html:
    """The part that a notebook shows, with its own style."""
    return make_fragment(make_body(e))


def make_body(e: Explanation, links: Html = Html()) -> Html:  # noqa: B008
    """What it is in everyday words, the equation, the code, the books, the examples, the tests, the notes."""
    s = e.system
    meta = html('<span class="mono">{}</span> · {} · {}', s.slug, s.family, s.kind)
    header = html("<header><h1>{}</h1>{}<p>{}</p></header>", s.name, make_badge(e.state), meta)
    about = html('<p class="plain">{}</p>', e.plain) if e.plain else None
    code = [show_definition(e), [show_code("The code", c) for c in e.code]]
    code += [[show_code("The fast form", c) for c in e.fast], list_places(e)]
    note = make_card("Notes on the books", html('<p class="soft">{}</p>', s.note)) if s.note else None
    rest = [list_books(e), list_examples(e), list_demands(e), list_tests(e), note]
    # A docstring holds the equation: our own rules come last, since it must not be dimmer than the code.
    return html("<style>{}{}</style>{}{}{}{}{}", Html(colour_code()), Html(STYLE), header, about, links, code, rest)


def make_badge(state: str) -> Html:
    return html('<span class="state {}">{}</span>', TONES.get(state, "warn"), state)


@cache
def colour_code() -> str:
    """The colours of the code in light and in dark; the backgrounds are the page's."""
    light, dark = (
        HtmlFormatter(style=name).get_style_defs(".descend .highlight") for name in ("default", "github-dark")
    )
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def show_definition(e: Explanation) -> Html:
    """The definition with its equations, as the docstring beside the code has it."""
    return make_card("Definition", format_prose(e.code[0].equation)) if e.code else Html()


def show_code(title: str, c: Code) -> Html:
    """A form of it: the code with the file's own line numbers."""
    lexer = PythonLexer()
    formats = [HtmlFormatter(linenos="inline", linenostart=piece.line) for piece in c.pieces]
    pieces = [Html(highlight(p.text, lexer, how)) for p, how in zip(c.pieces, formats, strict=True)]
    head = html('<h2>{} <span class="mono at">{}</span></h2>', title, c.at)
    return html('<section class="card">{}{}</section>', head, pieces)


def list_places(e: Explanation) -> Html:
    """Where else it is built."""
    places = [html('<li class="mono">{} {}</li>', c.at, c.symbol) for c in e.more]
    return make_card("Also built in", html("<ul>{}</ul>", places)) if places else Html()


def format_prose(docstring: str) -> Html:
    """Paragraphs; an indented block is mathematics, typeset in its columns. Neighbouring blocks of it are one."""
    blocks: list[tuple[bool, str]] = []
    for block in re.split(r"\n\s*\n", docstring):
        rows = block.split("\n")
        if not all(row.startswith("    ") for row in rows):
            blocks.append((False, block))
        elif text := "\n".join(row[4:] for row in rows):
            before = blocks.pop()[1] + "\n\n" if blocks and blocks[-1][0] else ""
            blocks.append((True, before + text))
    return join(typeset_block(b) if math else html("<p>{}</p>", mark_code(b)) for math, b in blocks)


def mark_code(text: str) -> list[object]:
    """`names` in a paragraph as code."""
    return [html("<code>{}</code>", piece) if i % 2 else piece for i, piece in enumerate(re.split("`([^`]+)`", text))]


def list_books(e: Explanation) -> Html:
    """The sections; the definitions are folded away once there is code."""
    rows = []
    for b in e.books:
        places = [
            html("{}{}: <i>{}</i>, {}", "; " * bool(i), p.book, p.title, p.section) for i, p in enumerate(b.places)
        ]
        name = html('<b>{}</b> <span class="soft">{} · {}</span>', b.name, places, b.entry)
        opening = Html("<details>" if e.code else "<details open>")
        rows.append(html("{}<summary>{}</summary><p>{}</p></details>", opening, name, b.defines))
    missing = None if e.code else html('<p class="warn">Not built yet: this is what the books say.</p>')
    return make_card("In the books", missing, rows)


def list_examples(e: Explanation) -> Html:
    """One card for each worked example."""
    if not e.examples:
        return make_card("Worked examples", html('<p class="soft">The books have none.</p>'))
    return html("<h2>Worked examples, {}</h2>{}", tally(e), [show_example(o) for o in e.examples])


def show_example(o: Outcome) -> Html:
    """Printed, recomputed and ours, side by side."""
    x = o.example
    erratum = html('<span class="state warn">erratum: the printed value is wrong</span>')
    about = html(
        '<p class="note">{} {} · <span class="mono">{}</span> · {}</p>',
        x.book,
        x.section,
        x.id,
        erratum if o.erratum else x.verdict,
    )
    reason = html('<p class="warn">{}</p>', o.reason) if o.reason else None
    note = make_note(x.note) if x.note.strip() else None
    given = html("<p>Given {}</p>", show_inputs(x.inputs, LONGEST)) if x.inputs else None
    how = html("<p>Compute {}</p>", x.computation.strip()) if x.computation.strip() else None
    head = [html("<th>{}</th>", name) for name in ("", "printed", "recomputed", "ours", "")]
    table = html('<div class="wide"><table><tr>{}</tr>{}</table></div>', head, [show_value(v) for v in o.values])
    style = "card example erratum" if o.erratum else "card example"
    title = html("<h2>{} {}</h2>", x.title, make_badge(o.state))
    return html('<section class="{}">{}{}</section>', style, title, [about, given, how, reason, note, table])


def show_value(v: Value) -> Html:
    """A row of the table."""
    tone, said = ("warn", f"set aside: {v.reason}") if v.reason else MARKS[v.agree]
    cells = [html("<td>{}</td>", "\n".join(lines(x))) for x in (v.printed, v.recomputed, v.ours)]
    return html('<tr><td class="key">{}</td>{}<td class="mark {}">{}</td></tr>', v.key, cells, tone, said)


def list_demands(e: Explanation) -> Html:
    """What the row asks for, the open ones marked."""
    if not e.demands:
        return Html()
    marks = {True: html('<span class="state good">proven</span>'), False: html('<span class="state warn">open</span>')}
    items = [html("<li>{} {} <code>{}</code></li>", marks[d.proven], d.text, d.demand) for d in e.demands]
    return make_card(f"Demands, {count_open(e)}", html('<ul class="demands">{}</ul>', items))


def list_tests(e: Explanation) -> Html:
    """The tests, a line for each test function."""
    if not e.proof.tests:
        return make_card("Proof", html('<p class="warn">No test proves it yet.</p>'))
    tone, how = ("good", "all passed") if e.proof.passed else ("bad", "not all passed")
    functions = Counter(test.partition("[")[0] for test in e.proof.tests)
    items = [html('<li class="mono">{}{}</li>', f, f" × {n}" if n > 1 else "") for f, n in functions.items()]
    said = html('<p>{} tests, <span class="{}">{}</span> in the recorded run.</p>', len(e.proof.tests), tone, how)
    return make_card("Proof", said, html("<ul>{}</ul>", items))
