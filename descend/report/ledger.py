"""The ledger: what the books claim, as printed and as tested; the verdicts, the evidence, the date and the machine."""

from __future__ import annotations

from collections import Counter
from typing import Any

from descend.report.evidence import make_evidence, make_statement
from descend.web.markup import Html, html
from descend.web.page import make_page
from descend.web.parts import make_figures, make_header, make_note, make_table

ABOUT = (
    "Claims of five textbooks on deep learning, each tested by a small measurement. A prediction with its threshold is"
    " written before the measurement; it is supported or refuted where the whole 95% bootstrap interval of its effect"
    " over the seeds says so, else open. With three seeds the interval goes from the lowest to the highest."
)


def make_ledger(found: list[dict[str, Any]], drawings: dict[str, str], made: str) -> Html:
    """`found` is what each lab found, `drawings` an image of some labs as a data URL."""
    counts = Counter(one["verdict"] for one in found)
    head = make_header("What the labs found", ABOUT)
    figures = make_figures((str(counts[v]), f" of {len(found)}", v) for v in ("supported", "refuted", "open"))
    short = [
        (
            html('<a href="#{}">{}</a>', one["lab"], one["lab"]),
            html('<span class="state {}">{}</span>', one["verdict"], one["verdict"]),
            html('{}<br><span class="warn">{}</span>', one["claim"], mark_retuned(one)),
            f"{len(one['seeds'])}",
            html('<span style="white-space:nowrap">{}</span>', f"{sum(one['seconds']):.0f} s"),
        )
        for one in found
    ]
    table = make_table(["lab", "verdict", "claim as tested", "seeds", "cost"], short)
    overview = html('<section class="card">{}</section>', table)
    parts = [make_entry(one, drawings.get(one["lab"], "")) for one in found]
    return make_page("What the labs found", head, figures, overview, *parts, html("<footer>{}</footer>", made))


def mark_retuned(found: dict[str, Any]) -> str:
    """What a reader of the verdict has to know besides."""
    remarks = ["retuned after a first look"] if found.get("retuned") else []
    remarks += [f"as printed: {found['printed_verdict']}"] if found.get("printed_verdict") else []
    return "; ".join(remarks)


def make_entry(found: dict[str, Any], drawing: str) -> Html:
    """One lab of the ledger."""
    badge = html('<span class="state {}">{}</span>', found["verdict"], found["verdict"])
    image = html('<section class="card paper"><img src="{}" alt="" style="max-width:100%"></section>', drawing)
    made = f"{len(found['seeds'])} seeds, budget {found['budget']:g} s a seed, {found.get('made', '')}"
    return html(
        '<h2 id="{}" style="margin-top:34px">{}{}</h2>{}{}{}{}',
        found["lab"],
        found["lab"],
        badge,
        make_statement(found),
        make_evidence(found),
        image if drawing else None,
        make_note(made),
    )
