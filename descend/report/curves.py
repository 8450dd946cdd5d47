"""The curves of a run: training losses with the validation loss, and whatever else was logged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from descend.engine.progress import steady
from descend.report.exhibits import legend
from descend.report.history import History, number
from descend.report.svg import Series, chart, smooth

FEW = 100  # points below which a curve is drawn as it is


@dataclass(frozen=True)
class Card:
    """A small chart with its title."""

    title: str
    series: list[Series]
    mark: tuple[float, float, str] | None = None
    scale: str = "even"


def loss_card(history: History) -> str:
    """Training losses (raw and smoothed) and the validation loss."""
    series = []
    for i, name in enumerate(history.losses):
        colour = i if i == 0 else i + 1  # 1 is validation's
        label = "training loss" if name == "loss" else f"training {name.replace('_', ' ')}"
        series += curve(label, *history.series(name), colour)
    if any("loss" in line["valid"] for line in history.valid):
        series.append(scores(history, "loss", "validation loss"))
    if not series:
        return '<section class="card"><h2>Loss</h2><p class="empty">No step was logged.</p></section>'
    drawn = chart(series, (1000, 340), ("step", ""), best_mark(history, "loss"), "auto")
    return f'<section class="card"><h2>Loss</h2>{legend(series)}{drawn}</section>'


def small_cards(history: History) -> str:
    """The other validation scores, learning rate, gradient norm and throughput, three or two in a row."""
    cards = []
    for name in sorted({key for line in history.valid for key in line["valid"]} - {"loss"}):
        cards.append(Card(f"Validation {name}", [scores(history, name, name)], best_mark(history, name)))
    logged = {name: history.series(name) for name in ("lr", "grad_norm", "rate")}
    logged = {name: (x, y) for name, (x, y) in logged.items() if sum(map(math.isfinite, y)) > 1}
    if "lr" in logged:
        # The learning rate is exact: there is nothing to smooth.
        cards.append(Card("Learning rate", [Series("learning rate", *logged["lr"], "line", 2)]))
    if "grad_norm" in logged:
        cards.append(Card("Gradient norm", curve("gradient norm", *logged["grad_norm"], 5), scale="auto"))
    if "rate" in logged:
        cards.append(Card(f"Throughput ({history.unit}/s)", curve("throughput", *logged["rate"], 5)))
    in_row = 2 if len(cards) in (2, 4) else 3
    size = (490, 210) if in_row == 2 else (330, 200)
    drawn = [
        f'<section class="card"><h3>{escape(card.title)}</h3>'
        f"{chart(card.series, size, ('step', ''), card.mark, card.scale)}</section>"
        for card in cards
    ]
    return f'<div class="small row{in_row}">{"".join(drawn)}</div>' if cards else ""


def curve(label: str, x: list[float], y: list[float], colour: int) -> list[Series]:
    """A metric as its raw line, faint, under its smoothed one; a short one as it is."""
    raw = Series(label, x, y, "line", colour)
    points = raw.finite()
    if len(points) < FEW:
        return [raw]
    smoothed = smooth([value for _, value in points])
    return [Series(label, x, y, "faint", colour), Series(label, [step for step, _ in points], smoothed, "line", colour)]


def scores(history: History, name: str, label: str) -> Series:
    """A validation score at the steps where it was taken."""
    lines = [line for line in history.valid if name in line["valid"]]
    return Series(
        label, [float(line["step"]) for line in lines], [number(line["valid"][name]) for line in lines], "points", 1
    )


def best_mark(history: History, name: str) -> tuple[float, float, str] | None:
    """Where to draw the ring: the best value, if this score is the one that is watched."""
    best = history.best if history.watch[1] == name else None
    return (float(best[0]), best[1], f"best {steady(best[1])}") if best else None
