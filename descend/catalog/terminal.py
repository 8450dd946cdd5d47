"""An explanation on the terminal. Colours and widths are the console's affair: in a pipe it is plain text."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from descend.catalog.explanation import Explanation, count_open, lines, show_inputs, tally
from descend.catalog.run import Outcome
from descend.catalog.source import Code, Piece

STATES = {
    "whole": "bold green",
    "core": "green",
    "tested": "bold red",
    "claimed": "bold yellow",
    "not built yet": "bold yellow",
}
MARKS = {True: ("agrees", "green"), False: ("differs", "bold red"), None: ("", "dim")}
WIDEST, TALLEST = 72, 8  # of a cell; HTML and JSON have it whole
LONGEST = 700  # characters of an example's inputs; JSON has them whole


def print_explanation(e: Explanation, console: Console) -> None:
    """Print it: what it is in everyday words, equation, code, books, examples, tests, notes."""
    s = e.system
    console.print(
        Text.assemble((s.name, "bold"), "\n", (f"{s.slug} · {s.family} · {s.kind} · ", "dim"), format_state(e))
    )
    if e.plain:
        console.print(Text(f"\n{e.plain}"))
    parts = [show_definition(e), show_code(e), list_books(e), list_examples(e), list_demands(e), list_tests(e)]
    for part in [*parts, *([show_note(s.note)] if s.note else [])]:
        console.print()
        console.print(part)


def format_state(e: Explanation) -> Text:
    return Text(e.state, STATES[e.state])


def show_definition(e: Explanation) -> RenderableType:
    """The definition with its equations, as the docstring beside the code has it."""
    if not e.code:
        return Text("not built yet: below is what the books say", "yellow")
    return Group(Rule("definition", align="left"), Text(e.code[0].equation))


def show_code(e: Explanation) -> RenderableType:
    """The standard form, the fast form, and where else it is built."""
    parts = [part for c in e.code for part in show_form("the code", c)]
    parts += [part for c in e.fast for part in show_form("the fast form", c)]
    parts += [Text(f"also built in {c.at}  {c.symbol}".rstrip(), "dim") for c in e.more]
    return Group(*parts)


def show_form(title: str, c: Code) -> list[RenderableType]:
    """A title that says where it is, and the code."""
    code = [part for p in c.pieces for part in (show_piece(p), Text())]
    return [Rule(f"{title}: {c.at}", align="left"), *code]


def show_note(note: str) -> RenderableType:
    """Where the books differ, and what they leave out."""
    return Group(Rule("notes on the books", align="left"), Text(note, "dim"))


def show_piece(p: Piece) -> Syntax:
    """Code with the file's own line numbers, on the terminal's own background."""
    return Syntax(
        p.text,
        "python",
        theme="ansi_dark",
        background_color="default",
        line_numbers=True,
        start_line=p.line,
        word_wrap=True,
    )


def list_books(e: Explanation) -> RenderableType:
    """The sections; and, while nothing is built, the definitions."""
    parts: list[RenderableType] = [Rule("in the books", align="left")]
    for b in e.books:
        where = "; ".join(f"{p.book}: {p.title}, {p.section}" for p in b.places)
        parts.append(Text.assemble((b.name, "bold"), f"  {where}  ", (b.entry, "dim")))
        if not e.code:
            parts.append(Padding(Text(b.defines), (0, 0, 1, 4)))
    return Group(*parts)


def list_examples(e: Explanation) -> RenderableType:
    """One table for each example, run a moment ago."""
    if not e.examples:
        return Text("The books have no worked example of it.", "dim")
    parts: list[RenderableType] = [Rule(f"worked examples, {tally(e)}", align="left")]
    for o in e.examples:
        parts += [format_heading(o), Padding(Group(*list_remarks(o), make_table(o)), (0, 0, 1, 2), expand=False)]
    return Group(*parts)


def format_heading(o: Outcome) -> Text:
    x = o.example
    flag = ("ERRATUM: the printed value is wrong", "bold yellow") if o.erratum else (x.verdict, "dim")
    return Text.assemble((x.title, "bold"), f"  {x.book} {x.section}  ", (x.id, "dim"), "  ", flag)


def list_remarks(o: Outcome) -> list[Text]:
    """What goes in and what is done with it, how it went when it did not simply agree, and the note on the value."""
    x = o.example
    lines = []
    if x.inputs:
        lines.append(Text.assemble(("given    ", "dim"), show_inputs(x.inputs, LONGEST)))
    if x.computation.strip():
        lines.append(Text.assemble(("compute  ", "dim"), x.computation.strip()))
    if o.state != "agrees":
        style = "bold red" if o.state in ("differs", "failed") else "yellow"
        lines.append(Text(f"{o.state}: {o.reason}" if o.reason else o.state, style))
    return [*lines, Text(x.note.strip(), "dim")] if x.note.strip() else lines


def make_table(o: Outcome) -> Table:
    """printed | recomputed | ours, one row a key."""
    rows = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("", "printed", "recomputed", "ours", ""):
        rows.add_column(name, overflow="fold")
    for v in o.values:
        word, style = MARKS[v.agree]
        note = Text(f"set aside: {v.reason}", "yellow") if v.reason else Text(word, style)
        rows.add_row(Text(v.key), *(format_cell(x) for x in (v.printed, v.recomputed, v.ours)), note)
    return rows


def format_cell(value: Any) -> Text:
    """A value, cut where it would fill the screen. Not a str: rich would take [cat] for markup."""
    rows = [row if len(row) <= WIDEST else row[: WIDEST - 1] + "…" for row in lines(value)]
    return Text("\n".join(rows if len(rows) <= TALLEST else [*rows[: TALLEST - 1], "…"]))


def list_demands(e: Explanation) -> RenderableType:
    """What the row asks for: what is proven, and what is open."""
    if not e.demands:
        return Text("The demands of this system are not listed yet.", "dim")
    rows = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for d in e.demands:
        rows.add_row(Text("proven", "green") if d.proven else Text("open", "yellow"), Text(d.demand), Text(d.text))
    return Group(Rule(f"demands, {count_open(e)}", align="left"), rows)


def list_tests(e: Explanation) -> RenderableType:
    """The tests that prove it, a line for each test function, and how the recorded run went."""
    if not e.proof.tests:
        return Text("No test proves it yet.", "yellow")
    how = "all passed" if e.proof.passed else "not all passed"
    parts: list[RenderableType] = [Rule(f"proof: {len(e.proof.tests)} tests, {how} in the recorded run", align="left")]
    functions = Counter(test.partition("[")[0] for test in e.proof.tests)
    parts += [Text(f"{name}  × {n}" if n > 1 else name) for name, n in functions.items()]
    return Group(*parts)
