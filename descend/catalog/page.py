"""An explanation as one HTML page: no script, no font and no picture from elsewhere, readable in light and dark."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from html import escape

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from descend.catalog.explanation import Code, Explanation, lines, tally
from descend.catalog.run import Outcome, Value

CSS = """
:root { color-scheme: light dark; --paper: #fdfcf9; --ink: #22252a; --soft: #6a6f78; --line: #e4e0d6; --card: #f6f3ec;
  --accent: #0b5fa5; --good: #1f7a3d; --bad: #b3261e; --warn: #8a5a00; --warn-card: #fbf1d9; }
@media (prefers-color-scheme: dark) { :root { --paper: #15171b; --ink: #dfe2e7; --soft: #949ba6; --line: #2c3038;
  --card: #1c1f25; --accent: #7db8ee; --good: #6cc98b; --bad: #f28b82; --warn: #e5b95c; --warn-card: #2a2416; } }
.descend { background: var(--paper); color: var(--ink); font: 16px/1.6 ui-serif, Georgia, "Times New Roman", serif;
  max-width: 64rem; margin: 0 auto; padding: 3rem 1.5rem 5rem; overflow-wrap: break-word; }
.descend * { box-sizing: border-box; }
.descend h1 { font-size: 2.1rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; }
.descend h2 { font-size: 1.25rem; margin: 3rem 0 .8rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
.descend h3 { font-size: 1rem; margin: 0; }
.descend p { margin: .7rem 0; max-width: 50rem; }
.descend pre, .descend code, .descend .mono { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.descend code { font-size: .88em; }
.descend pre { margin: .9rem 0; overflow-x: auto; font-size: .84rem; line-height: 1.55; }
.descend pre.math { padding: 1rem 1.2rem; background: var(--card); border-left: 3px solid var(--accent);
  border-radius: 0 6px 6px 0; font-size: .9rem; }
.descend .highlight pre { padding: .8rem 1rem; border: 1px solid var(--line); border-radius: 6px; margin: .6rem 0; }
.descend .linenos { user-select: none; }
.descend .meta, .descend .soft { color: var(--soft); font-size: .88rem; }
.descend .at { color: var(--accent); font-size: .84rem; }
.descend .chip { display: inline-block; padding: 0 .6em; border: 1px solid currentColor; border-radius: 1em;
  font: 600 .76rem/1.6 ui-sans-serif, system-ui, sans-serif; white-space: nowrap; }
.descend .good { color: var(--good); } .descend .bad { color: var(--bad); } .descend .warn { color: var(--warn); }
.descend .card { border: 1px solid var(--line); border-radius: 8px; padding: .9rem 1.1rem; margin: .9rem 0; }
.descend .card.erratum { background: var(--warn-card); border-color: var(--warn); }
.descend .scroll { overflow-x: auto; }
.descend table { border-collapse: collapse; font-size: .82rem; margin-top: .6rem; }
.descend th { text-align: left; color: var(--soft); font: 600 .72rem/1.6 ui-sans-serif, system-ui, sans-serif; }
.descend th, .descend td { padding: .22rem 1.4rem .22rem 0; vertical-align: top; }
.descend td { border-top: 1px solid var(--line); font-family: ui-monospace, Menlo, Consolas, monospace;
  white-space: pre-wrap; }
.descend td.key { color: var(--soft); } .descend td.note { font-family: inherit; min-width: 5rem; }
.descend details { margin: .5rem 0; } .descend summary { cursor: pointer; }
.descend ul { padding-left: 1.2rem; margin: .5rem 0; font-size: .84rem; }
body { margin: 0; background: var(--paper); }
"""
CHIPS = {"proven": "good", "tested": "bad", "claimed": "warn", "not built yet": "warn"}
HEADER = "<tr><th></th><th>printed</th><th>recomputed</th><th>ours</th><th></th></tr>"
MARKS = {True: "<td class='note good'>✓</td>", False: "<td class='note bad'>differs</td>", None: "<td></td>"}
STATES = {"agrees": "good", "differs": "bad", "failed": "bad"}


def page(e: Explanation) -> str:
    """The whole document."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    title = f"<title>{escape(e.system.name)}</title>"
    return f"<!doctype html>\n<html lang=en><head>{head}{title}</head>\n<body>{article(e)}</body></html>\n"


def article(e: Explanation) -> str:
    """The part that a notebook shows, with its own style."""
    s = e.system
    top = (
        f"<h1>{escape(s.name)}</h1><div class=meta><span class=mono>{s.slug}</span> · {s.family} · {s.kind} "
        f"<span class='chip {CHIPS[e.state]}'>{e.state}</span></div>"
        + (f"<p class=soft>{escape(s.note)}</p>" if s.note else "")
    )
    parts = [top, *map(code, e.code), books(e), worked(e), proof(e)]
    return f"<style>{CSS}{colours()}</style><main class=descend>{''.join(parts)}</main>"


@cache
def colours() -> str:
    """The colours of the code, for paper and for night; the backgrounds are the page's."""
    light, dark = (HtmlFormatter(style=name).get_style_defs(".descend .highlight") for name in ("friendly", "nord"))
    text = f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
    # A docstring holds the equation: it must not be dimmer than the code.
    ours = """.descend .highlight, .descend .highlight .err { background: none; border: none; }
.descend .highlight .linenos { color: var(--soft); background: none; opacity: .65; padding: 0 1em 0 0; }
.descend .highlight .sd { color: var(--accent); font-style: normal; }
"""
    return text + ours


def code(c: Code) -> str:
    """A claim: prose and equations of the docstring, then the code with the file's own line numbers."""
    lexer = PythonLexer()
    pieces = "".join(highlight(p.text, lexer, HtmlFormatter(linenos="inline", linenostart=p.line)) for p in c.pieces)
    return f"<h2><span class='mono at'>{escape(c.path)}:{c.line}</span></h2>{prose(c.equation)}{pieces}"


def prose(docstring: str) -> str:
    """Paragraphs; an indented block is mathematics and keeps its columns."""
    blocks: list[str] = []
    for block in re.split(r"\n\s*\n", docstring):
        lines = block.split("\n")
        if all(line.startswith("    ") for line in lines):
            text = escape("\n".join(line[4:] for line in lines))
            # Neighbouring blocks of mathematics are one.
            if blocks and blocks[-1].endswith("</pre>"):
                blocks[-1] = blocks[-1].removesuffix("</pre>") + f"\n\n{text}</pre>"
            else:
                blocks.append(f"<pre class=math>{text}</pre>")
        else:
            blocks.append("<p>" + re.sub("`([^`]+)`", r"<code>\1</code>", escape(block)) + "</p>")
    return "".join(blocks)


def books(e: Explanation) -> str:
    """The sections; the definitions are folded away once there is code."""
    rows = []
    for b in e.books:
        where = "; ".join(f"<i>{escape(p.title)}</i>, {escape(p.section)}" for p in b.places)
        name = f"<b>{escape(b.name)}</b> <span class=soft>{where} · {b.entry}</span>"
        fold = "" if e.code else " open"
        rows.append(f"<details{fold}><summary>{name}</summary><p>{escape(b.defines)}</p></details>")
    missing = "" if e.code else "<p class=warn>Not built yet: this is what the books say.</p>"
    return f"<h2>In the books</h2>{missing}{''.join(rows)}"


def worked(e: Explanation) -> str:
    """One card for each example."""
    if not e.examples:
        return "<h2>Worked examples</h2><p class=soft>The books have none.</p>"
    return f"<h2>Worked examples, {tally(e)}</h2>{''.join(map(card, e.examples))}"


def card(o: Outcome) -> str:
    x = o.example
    verdict = "<span class='chip warn'>erratum: the printed value is wrong</span>" if o.erratum else x.verdict
    chip = f"<span class='chip {STATES.get(o.state, 'warn')}'>{o.state}</span>"
    reason = f"<div class=warn>{escape(o.reason)}</div>" if o.reason else ""
    note = f"<div class=soft>{escape(x.note)}</div>" if x.note.strip() else ""
    rows = "".join(map(row, o.values))
    return (
        f"<div class='card{' erratum' if o.erratum else ''}'><h3>{escape(x.title)} {chip}</h3>"
        f"<div class=soft>{x.book} {escape(x.section)} · <span class=mono>{escape(x.id)}</span> · {verdict}</div>"
        f"{reason}{note}<div class=scroll><table>{HEADER}{rows}</table></div></div>"
    )


def row(v: Value) -> str:
    mark = {True: "<td class='note good'>✓</td>", False: "<td class='note bad'>differs</td>", None: "<td></td>"}[
        v.agree
    ]
    if v.reason:
        mark = f"<td class='note warn'>set aside: {escape(v.reason)}</td>"
    texts = ("\n".join(lines(x)) for x in (v.printed, v.recomputed, v.ours))
    cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
    return f"<tr><td class=key>{escape(v.key)}</td>{cells}{mark}</tr>"


def proof(e: Explanation) -> str:
    """The tests, a line for each test function."""
    if not e.proof.tests:
        return "<h2>Proof</h2><p class=warn>No test proves it yet.</p>"
    how = "<span class=good>all passed</span>" if e.proof.passed else "<span class=bad>not all passed</span>"
    functions = Counter(test.partition("[")[0] for test in e.proof.tests)
    lines = "".join(f"<li class=mono>{escape(f)}{f' × {n}' if n > 1 else ''}</li>" for f, n in functions.items())
    return f"<h2>Proof</h2><p>{len(e.proof.tests)} tests, {how} in the recorded run.</p><ul>{lines}</ul>"
