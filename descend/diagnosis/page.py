"""The findings on a run as a page."""

from __future__ import annotations

from descend.diagnosis.examine import Examination
from descend.diagnosis.signs import Finding
from descend.web.markup import Html, html
from descend.web.page import make_page
from descend.web.parts import make_header, make_note, make_warning


def make_findings_page(run: str, found: Examination) -> Html:
    """Each finding with its numbers, the equation behind it and the change to make."""
    cards = [show_finding(finding) for finding in found.findings]
    healthy = html('<section class="card"><p class="good">No problem found.</p></section>')
    notes = [make_note(note) for note in found.notes]
    return make_page(f"doctor: {run}", make_header(run), *(cards or [healthy]), *notes)


def show_finding(finding: Finding) -> Html:
    title = html("<h2>{} <small>{}</small></h2>", finding.name, finding.severity)
    body = html("<pre>{}</pre><p>{}</p>", finding.equation, finding.change)
    return html('<section class="card">{}{}{}</section>', title, make_warning(finding.evidence), body)
