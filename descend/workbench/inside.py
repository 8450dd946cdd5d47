"""A run's network at any of its checkpoints: what its family shows, its layers, and the user's own input.

The parts of a run are built once; a slider over training time then only exchanges the weights.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.saved import read_saved
from descend.report.exhibits import make_section
from descend.report.history import read_history
from descend.report.showing import build_parts, make_exhibits, take_weights
from descend.web.chart import Series, draw_choices, name_series
from descend.web.markup import Html, html, join
from descend.web.parts import make_card, make_note

LONGEST = 64  # tokens of an own text
KEPT = 40  # steps whose pictures are kept
NOTHING = make_note("This family shows nothing of itself yet; its layers are below.")
LOCK = threading.Lock()
DRAWN: dict[tuple[str, int], Html] = {}
BUILT: dict[str, Parts] = {}  # of the run that was looked at last


def draw_inside(run: Path, step: int) -> Html:
    """What the family shows with the weights of a step."""
    folder = find_step(run, step)
    key = str(folder), folder.stat().st_mtime_ns
    with LOCK:
        if key not in DRAWN:
            found = make_exhibits(build(run), run, folder)
            DRAWN[key] = html('<div class="exhibits">{}</div>', [make_section(one) for one in found] or [NOTHING])
            while len(DRAWN) > KEPT:
                DRAWN.pop(next(iter(DRAWN)))
        return DRAWN[key]


def build(run: Path) -> Parts:
    """The parts of a run: kept until another run is looked at."""
    key = str(run)
    if key not in BUILT:
        BUILT.clear()
        _, recipe, _ = read_saved(read_history(run).recipe, run / "recipe.json")
        BUILT[key] = build_parts(recipe)
        BUILT[key].task.to("cpu")
    return BUILT[key]


def find_step(run: Path, step: int) -> Path:
    named = (run / "checkpoints").glob("step-*")
    found = [one for one in named if one.name[5:].isdigit() and int(one.name[5:]) == step]
    if not found:
        raise Mistake(f"{run.name} has no checkpoint of step {step:,} any more")
    return found[0]


def draw_layers(run: Path, step: int) -> Html:
    """Weights, activations and gradients of every layer on one training batch."""
    with LOCK:
        parts = build(run)
        take_weights(parts, find_step(run, step))
        rows = measure_layers(parts)
    if not rows:
        return make_note("No layer with weights was reached by a training batch.")
    places = tuple(short(row.name) for row in rows)
    at = [float(k) for k in range(len(rows))]
    cards = []
    for title, note, column in COLUMNS:
        series = [
            Series(label, at, [row.measured[k] for row in rows], "points", colour)
            for colour, (label, k) in enumerate(column.items())
        ]
        chart = draw_choices(series, places, (1000, 260), ("layer", ""))
        cards.append(make_card(title, name_series(series) if len(series) > 1 else None, chart, note=note))
    return join(cards)


class Layer(NamedTuple):
    """A layer, and its mean, deviation, log₁₀ of the gradient, and weight."""

    name: str
    measured: tuple[float, float, float, float]


COLUMNS: tuple[tuple[str, str, dict[str, int]], ...] = (
    ("Activations", "Mean and standard deviation of what each layer puts out.", {"mean": 0, "standard deviation": 1}),
    ("Gradients", "log₁₀ of the root mean square of the gradient of each layer's weights.", {"gradient": 2}),
    ("Weights", "Root mean square of each layer's weights.", {"weights": 3}),
)


def short(name: str, longest: int = 14) -> str:
    return name if len(name) <= longest else "…" + name[1 - longest :]


def measure_layers(parts: Parts) -> list[Layer]:
    """The layers with a matrix, in the order in which they run."""
    seen: dict[str, tuple[float, float]] = {}

    def watch(name: str) -> Callable[[Any, Any, Any], None]:
        def note(_: Any, __: Any, out: Any) -> None:
            value = out[0] if isinstance(out, tuple) and out else out
            if isinstance(value, Tensor) and value.is_floating_point() and name not in seen:
                x = value.detach().float()
                seen[name] = float(x.mean()), float(x.std()) if x.numel() > 1 else 0.0

        return note

    modules = dict(parts.task.named_modules())
    matrices = {name: [p for p in one.parameters(recurse=False) if p.dim() > 1] for name, one in modules.items()}
    hooks = [modules[name].register_forward_hook(watch(name)) for name, found in matrices.items() if found]
    try:
        parts.task.train()
        parts.task.zero_grad(set_to_none=True)
        batch = next(parts.stream)
        next(iter(parts.task.moves(batch))).value().total().backward()
    finally:
        for hook in hooks:
            hook.remove()
        parts.task.eval()
    rows = []
    for name, (mean, deviation) in seen.items():
        gradients = [p.grad.flatten() for p in matrices[name] if p.grad is not None]
        size = float(torch.cat(gradients).float().square().mean().sqrt()) if gradients else 0.0
        weight = float(torch.cat([p.detach().flatten() for p in matrices[name]]).float().square().mean().sqrt())
        log = float(torch.tensor(size).clamp_min(1e-12).log10()) if gradients else float("nan")
        rows.append(Layer(name.partition(".")[2] or name, (mean, deviation, log, weight)))
    parts.task.zero_grad(set_to_none=True)
    return rows
