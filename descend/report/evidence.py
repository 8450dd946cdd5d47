"""Evidence as a picture and a table: what each seed measured, the interval of the mean, and the threshold."""

from __future__ import annotations

from typing import Any

from descend.web.axes import Axis, pad_limits
from descend.web.markup import Html, html, join
from descend.web.parts import make_card, make_table

WIDTH, HEIGHT, SIDE = 200, 34, 10


def draw_strip(told: dict[str, Any]) -> Html:
    """A line of numbers: a dot for each seed, a bar for the 95% interval, a dashed line for each threshold."""
    values = [value for value in told["values"] if value is not None]
    if not values:
        return html('<span class="soft">not measured</span>')
    lo, hi = pad_limits([*values, *told["bounds"]], 0.1)
    axis = Axis(lo, hi, SIDE, WIDTH - SIDE)
    parts = [html('<line class="axis" x1="{}" x2="{}" y1="14" y2="14"/>', SIDE, WIDTH - SIDE)]
    low, high = told["interval"]
    if low is not None:
        wide = max(axis.at(high) - axis.at(low), 1.5)
        parts.append(
            html(
                '<rect x="{:.1f}" y="10" width="{:.1f}" height="8" rx="2" fill="var(--c0)" opacity=".3"/>',
                axis.at(low),
                wide,
            )
        )
    for bound in told["bounds"]:
        x = axis.at(bound)
        parts.append(html('<line class="cross" x1="{:.1f}" x2="{:.1f}" y1="3" y2="25"/>', x, x))
        parts.append(html('<text x="{:.1f}" y="33" text-anchor="{}">{}</text>', x, lean(x), f"{bound:.4g}"))
    dots = [html('<circle cx="{:.1f}" cy="14" r="3.2"/>', axis.at(value)) for value in values]
    parts.append(html('<g class="points c0">{}</g>', dots))
    return html('<svg viewBox="0 0 {} {}" style="width:{}px">{}</svg>', WIDTH, HEIGHT, WIDTH, join(parts))


def lean(x: float) -> str:
    """How a label stands at this pixel, so that it stays inside."""
    return "start" if x < 3 * SIDE else "end" if x > WIDTH - 3 * SIDE else "middle"


def make_evidence_card(title: str, told: list[dict[str, Any]], note: str = "") -> Html:
    """The predictions of a lab, each with its picture, mean, interval, count of seeds and verdict."""
    if not told:
        return Html()
    columns = ["effect, and what refutes it", "predicted", "measured", "mean", "95% interval", "held", "verdict"]
    rows = [
        [
            html('<b>{}</b><br><span class="soft">{}</span>', one["effect"], one["text"]),
            html('<span style="white-space:nowrap">{}</span>', one["predicted"]),
            draw_strip(one),
            spell(one["mean"]),
            html('<span style="white-space:nowrap">{} .. {}</span>', *map(spell, one["interval"])),
            html('<span style="white-space:nowrap">{}</span>', one["held"].removesuffix(" seeds")),
            html('<span class="state {}">{}</span>', one["verdict"], one["verdict"]),
        ]
        for one in told
    ]
    return make_card(title, make_table(columns, rows), note=note)


def spell(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def make_evidence(found: dict[str, Any]) -> Html:
    """All of it: predictions, controls, and the form that the book prints."""
    said = found.get("printed_verdict", "")
    return join(
        [
            make_evidence_card("Predictions, as tested", found.get("predictions", [])),
            make_evidence_card(
                "Controls", found.get("controls", []), "what has to hold for the measurement to say anything"
            ),
            make_evidence_card(f"The form that is printed: {said}", found.get("printed_predictions", [])),
        ]
    )


def make_statement(found: dict[str, Any]) -> Html:
    """Where the claim stands, as it is printed and as it is tested; its scope; what was retuned."""
    rows = [
        ("where", found.get("where", "")),
        ("as printed", found.get("printed", "")),
        ("as tested", found["claim"]),
        ("scope", found.get("scope", "")),
        ("retuned after a first look", found.get("retuned", "")),
    ]
    lines = [
        html('<tr><td class="soft" style="min-width:86px">{}</td><td>{}</td></tr>', name, said)
        for name, said in rows
        if said
    ]
    return html('<section class="card"><div class="wide"><table>{}</table></div></section>', lines)
