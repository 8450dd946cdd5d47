"""The curves of a run: losses, what they are made of, what was measured on the way, and how the loop went."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from descend.engine.progress import steady
from descend.report.history import History, as_number
from descend.report.scores import WORDS, name_score, spell, title_of
from descend.web.chart import Mark, Series, draw_chart, name_series, smooth
from descend.web.markup import Html, html
from descend.web.palette import PALETTE
from descend.web.parts import make_card, make_row, make_small_card

FEW = 100  # points below which a curve is drawn as it is
LARGE = (1000, 340)
TERMS = (1000, 260)
VALID = 1  # the colour of validation


@dataclass(frozen=True)
class SmallChart:
    """A small chart with its title."""

    title: str
    series: list[Series]
    mark: Mark | None = None
    scale: str = "even"

    def draw(self, size: tuple[int, int]) -> Html:
        names = {s.label for s in self.series}
        legend = name_series(self.series) if len(names) > 1 else None
        drawn = draw_chart(self.series, size, ("step", ""), self.mark, self.scale)
        return make_small_card(self.title, html("{}{}", legend, drawn))


def draw_losses(history: History) -> Html:
    """Training losses (raw and smoothed) and the validation loss."""
    series = []
    for i, name in enumerate(history.losses):
        colour = i if i < VALID else i + 1
        label = "training loss" if name == "loss" else f"training loss, {spell(name.removeprefix('loss_'))}"
        series += make_curve(label, *history.series(name), colour)
    if any("loss" in line["valid"] for line in history.valid):
        series.append(make_scores(history, "loss", "validation loss"))
    if not series:
        return make_card("Loss", Html('<p class="empty">No step was logged.</p>'))
    drawn = draw_chart(series, LARGE, ("step", ""), mark_best(history, "loss"), "auto")
    return make_card("Loss", name_series(series), drawn)


def draw_terms(history: History) -> Html:
    """What the loss is made of, in one chart; nothing where it has one term."""
    if not history.terms:
        return Html()
    series = []
    for i, name in enumerate(history.terms):
        series += make_curve(title_of(name.removeprefix("loss_")), *history.series(name), i % PALETTE)
    note = "Each with its weight, as minimized; their sum is the loss."
    return make_card(
        "Loss terms", name_series(series), draw_chart(series, TERMS, ("step", ""), scale="auto"), note=note
    )


def draw_measures(history: History) -> Html:
    """What the task measured while training, a small chart each; real_score and fake_score share one."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in history.measured:
        groups[name.rpartition("_")[2]].append(name)
    charts = []
    for last, names in groups.items():
        if len(names) == 1:
            charts.append(SmallChart(title_of(names[0]), make_curve(title_of(names[0]), *history.series(names[0]), 3)))
        else:
            parts = [(name.removesuffix(f"_{last}") or name, name) for name in names]
            series = [
                s for i, (part, name) in enumerate(parts) for s in make_curve(part, *history.series(name), i % PALETTE)
            ]
            charts.append(SmallChart(title_of(last), series))
    return draw_row(charts)


def draw_course(history: History) -> Html:
    """The other validation scores, learning rate, gradient norm and throughput."""
    charts = []
    for name in sorted({key for line in history.valid for key in line["valid"]} - {"loss"}):
        title = f"Validation {name_score(name, history) if name in WORDS else spell(name)}"
        charts.append(SmallChart(title, [make_scores(history, name, name)], mark_best(history, name)))
    logged = {name: history.series(name) for name in ("lr", "grad_norm", "rate")}
    logged = {name: (x, y) for name, (x, y) in logged.items() if sum(map(math.isfinite, y)) > 1}
    if "lr" in logged:
        # The learning rate is exact: there is nothing to smooth.
        charts.append(SmallChart("Learning rate", [Series("learning rate", *logged["lr"], "line", 2)]))
    if "grad_norm" in logged:
        charts.append(SmallChart("Gradient norm", make_curve("gradient norm", *logged["grad_norm"], 5), scale="auto"))
    if "rate" in logged:
        charts.append(SmallChart(f"Throughput ({history.unit}/s)", make_curve("throughput", *logged["rate"], 5)))
    return draw_row(charts)


def draw_row(charts: list[SmallChart]) -> Html:
    """Three or two in a row, or one alone, so that no row is left almost empty."""
    columns = 1 if len(charts) == 1 else 2 if len(charts) in (2, 4) else 3
    size = {1: (1000, 220), 2: (490, 210), 3: (330, 200)}[columns]
    return make_row([chart.draw(size) for chart in charts], columns)


def make_curve(label: str, x: list[float], y: list[float], colour: int) -> list[Series]:
    """A metric as its raw line, faint, under its smoothed one; a short one as it is."""
    raw = Series(label, x, y, "line", colour)
    points = raw.finite()
    if len(points) < FEW:
        return [raw]
    smoothed = smooth([value for _, value in points])
    return [Series(label, x, y, "faint", colour), Series(label, [step for step, _ in points], smoothed, "line", colour)]


def make_scores(history: History, name: str, label: str) -> Series:
    """A validation score at the steps where it was taken."""
    lines = [line for line in history.valid if name in line["valid"]]
    steps, values = [float(line["step"]) for line in lines], [as_number(line["valid"][name]) for line in lines]
    return Series(label, steps, values, "points", VALID)


def mark_best(history: History, name: str) -> Mark | None:
    """Where to draw the ring: the best value, if this score is the one that is watched."""
    best = history.best if history.watch[1] == name else None
    return (float(best[0]), best[1], f"best {steady(best[1])}") if best else None
