"""The playground's network: a recipe like any other, trained a few steps at a time, with its surface and its neurons.

What the page shows is a run of `descend train` to the bit: the same recipe, engine and seed. The state of a page is a
step and the values of its form, so that it can be sent to somebody, and a studio that was started again goes on.
"""

from __future__ import annotations

import base64
import csv
import dataclasses
import hashlib
import io
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from descend.data.tables.source import Table, TableSplits
from descend.engine.distributed import World
from descend.engine.hardware import one_thread
from descend.engine.loop import Loop
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.table import LearnTable
from descend.models.layered import Layered, LayeredConfig
from descend.nn.activations import ACTIVATIONS
from descend.optim import book_rules, rules
from descend.optim.schedules import Constant
from descend.web.chart import Series, draw_chart, name_series
from descend.workbench.place import Place

CELLS, SMALL = 48, 20  # of a side: of the surface, and of a neuron's own
UNITS = 10  # neurons of a layer that are drawn
AT_ONCE, FARTHEST = 400, 20_000  # steps of a request, and of a page
KEPT = 3
EVERY = 10  # steps between two looks at the held-out points
CURVE = (520, 200)
EMBEDDED = ("moons", "circles", "xor", "factory")
RULES = (
    rules.SGD, rules.ShiftedNesterov, rules.RMSprop, rules.Adagrad, rules.Adadelta, rules.Rprop, rules.Adam,
    rules.AdamL2, rules.AdamW, rules.LBFGS, book_rules.HeavyBall, book_rules.Nesterov, book_rules.IterateAveraging,
    book_rules.LocalGains, book_rules.RMSPropInside, book_rules.AdagradInside, book_rules.Lion,
    book_rules.FletcherReeves, book_rules.PolakRibiere,
)  # fmt: skip
OPTIMIZERS = {rule.__name__: rule for rule in RULES}
LOCK = threading.Lock()


class Point(BaseModel):
    """A point that was drawn."""

    x: float = Field(ge=-1e6, le=1e6)
    y: float = Field(ge=-1e6, le=1e6)
    label: Literal["a", "b", "c", "d"]


class State(BaseModel):
    """The form of the playground."""

    model_config = ConfigDict(extra="forbid")

    data: str = "moons"
    points: list[Point] = Field(default=[], max_length=2000)
    hidden: list[int] = Field(default=[8, 8], max_length=8)
    activation: str = "tanh"
    start: str = "xavier-normal"
    norm: str = "none"
    dropout: float = Field(default=0.0, ge=0, lt=1)
    optimizer: str = "Adam"
    lr: float = Field(default=0.03, gt=0, le=100)
    decay: float = Field(default=0.0, ge=0, le=10)
    batch: int = Field(default=32, ge=0, le=4096)
    seed: int = Field(default=0, ge=0, lt=2**31)


def read_state(sent: Any) -> State:
    try:
        state = State.model_validate(sent)
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        raise Mistake(f"{'.'.join(map(str, found['loc']))}: {found['msg'].lower()}") from None
    if any(not 1 <= width <= 256 for width in state.hidden):
        raise Mistake("hidden: 1 to 256 units in each layer")
    return state


def make_recipe(state: State, place: Place) -> LearnTable:
    """The recipe that a form stands for."""
    if state.optimizer not in OPTIMIZERS:
        raise Mistake(f"optimizer {state.optimizer!r} is not one of {', '.join(OPTIMIZERS)}")
    rule: Any = OPTIMIZERS[state.optimizer]
    names = {field.name for field in dataclasses.fields(rule)}
    if state.decay and "weight_decay" not in names:
        raise Mistake(f"{state.optimizer} has no weight decay: set it to 0, or take another optimizer")
    given = {"lr": state.lr, "weight_decay": state.decay}
    optim = rule(**{name: value for name, value in given.items() if name in names})
    model = LayeredConfig(
        hidden=tuple(state.hidden), activation=state.activation, start=state.start, norm=state.norm,  # type: ignore[arg-type]
        dropout=state.dropout,
    )  # fmt: skip
    loop = Loop(steps=FARTHEST, batch=state.batch, eval_every=100, save_every=1000, watch="min loss", seed=state.seed)
    return LearnTable(model=model, data=find_table(state, place), optim=optim, schedule=Constant(), loop=loop)


def find_table(state: State, place: Place) -> Table:
    """An embedded table, a file, or the points that were drawn."""
    if state.data == "drawn":
        if len({point.label for point in state.points}) < 2 or len(state.points) < 10:
            raise Mistake("draw 10 points or more, of two colours at least")
        return Table(path=str(write_points(state.points, place)), target="class")
    if state.data in EMBEDDED:
        return Table(embedded=state.data)  # type: ignore[arg-type]
    return Table(path=str(place.find_data(state.data)))


def write_points(points: list[Point], place: Place) -> Path:
    """The points as a table, named by what is in it."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("x", "y", "class"))
    writer.writerows((f"{point.x:.6g}", f"{point.y:.6g}", point.label) for point in points)
    name = hashlib.sha256(text.getvalue().encode()).hexdigest()[:12]
    path = place.own / "files" / f"points-{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


@dataclass
class Session:
    """A training that a page looks at."""

    training: Training
    splits: TableSplits
    losses: list[float]
    valid: list[tuple[int, float, float]]

    @classmethod
    def begin(cls, recipe: LearnTable) -> Session:
        splits = recipe.data.read()
        if not splits.columns.target.labels:
            raise Mistake("the playground separates classes: give a table whose target has a few of them")
        if len(splits.columns.inputs) != 2:
            count = len(splits.columns.inputs)
            raise Mistake(f"the playground draws a plane, and this table has {count} inputs; train it instead")
        loop = replace(recipe.loop, compile="off", threads=1, device="cpu", precision="float32")
        return cls(Training(recipe.build(), loop, recipe.schedule, World()), splits, [], [])

    def go(self, to: int) -> None:
        """Train until this step."""
        while self.training.step < to:
            found = self.training.advance()
            self.losses.append(next(iter(found.values())))
            if self.training.step % EVERY == 0:
                self.valid.append((self.training.step, *self.score(self.splits.valid.x, self.splits.valid.y)))

    @torch.no_grad()
    def score(self, x: Tensor, y: Tensor) -> tuple[float, float]:
        """Loss and accuracy."""
        model = self.training.parts.model.eval()
        z = model(x)
        model.train()
        return float(torch.nn.functional.cross_entropy(z, y)), float((z.argmax(-1) == y).float().mean())


SESSIONS: OrderedDict[str, Session] = OrderedDict()


def show_step(state: State, to: int, place: Place) -> dict[str, Any]:
    """The playground at a step: losses, the surface, the neurons."""
    if not 0 <= to <= FARTHEST:
        raise Mistake(f"step {to:,}: the playground goes to {FARTHEST:,}; train it in a run to go on")
    key = state.model_dump_json()
    with LOCK, one_thread():
        session = SESSIONS.get(key)
        if session is None or session.training.step > to:
            session = SESSIONS[key] = Session.begin(make_recipe(state, place))
        SESSIONS.move_to_end(key)
        while len(SESSIONS) > KEPT:
            SESSIONS.popitem(last=False)
        session.go(min(to, session.training.step + AT_ONCE))
        return draw(session)


@torch.no_grad()
def draw(session: Session) -> dict[str, Any]:
    """What the page draws, in whole numbers of 0..255."""
    model = session.training.parts.model
    assert isinstance(model, Layered)
    model.eval()
    x, y = session.splits.train.x, session.splits.train.y
    lo, hi = x.amin(0) - 0.3, x.amax(0) + 0.3
    p = model(lay_grid(lo, hi, CELLS)).softmax(-1).topk(2, -1)
    lead = (p.values[:, 0] - p.values[:, 1]).nan_to_num()
    layers = []
    for a in model.trace(lay_grid(lo, hi, SMALL))[1:]:
        a = a[:, :UNITS].nan_to_num()
        scale = a.abs().amax(0).clamp_min(1e-6)
        layers.append([encode(127.5 + 127.5 * unit / top) for unit, top in zip(a.T, scale, strict=True)])
    loss, accuracy = session.score(x, y)
    model.train()
    columns = session.splits.columns
    return {
        "step": session.training.step,
        "box": [*lo.tolist(), *hi.tolist()],
        "cells": CELLS, "small": SMALL,
        "winner": encode(p.indices[:, 0].float()), "lead": encode(255 * lead),
        "layers": layers, "labels": list(columns.target.labels), "inputs": list(columns.inputs),
        "points": {"x": x.tolist(), "y": y.tolist()},
        "held": {"x": session.splits.valid.x.tolist(), "y": session.splits.valid.y.tolist()},
        "train": [loss, accuracy],
        "valid": list(session.score(session.splits.valid.x, session.splits.valid.y)),
        "parameters": sum(p.numel() for p in model.parameters()),
        "chart": str(draw_course(session)),
    }  # fmt: skip


def draw_course(session: Session) -> Any:
    """The losses so far."""
    steps = [float(k) for k in range(1, len(session.losses) + 1)]
    series = [Series("training loss, of each batch", steps, session.losses, "line", 0)]
    if session.valid:
        at, losses = [float(step) for step, _, _ in session.valid], [loss for _, loss, _ in session.valid]
        series.append(Series("validation loss", at, losses, "line", 1))
    return name_series(series) + draw_chart(series, CURVE, ("step", ""), scale="auto")


def lay_grid(lo: Tensor, hi: Tensor, cells: int) -> Tensor:
    """The middles of cells² cells of a box, the highest row first."""
    along = (torch.arange(cells) + 0.5) / cells
    up, across = torch.meshgrid(hi[1] - along * (hi[1] - lo[1]), lo[0] + along * (hi[0] - lo[0]), indexing="ij")
    return torch.stack([across, up], -1).view(-1, 2)


def encode(values: Tensor) -> str:
    return base64.b64encode(values.round().clamp(0, 255).to(torch.uint8).numpy().tobytes()).decode()


def choices() -> dict[str, list[str]]:
    """What the form offers."""
    from descend.models.layered import NORMS, STARTS

    return {
        "data": [*EMBEDDED, "drawn"],
        "activation": list(ACTIVATIONS),
        "start": list(STARTS),
        "norm": list(NORMS),
        "optimizer": list(OPTIMIZERS),
    }


# As Python


def write_python(state: State, steps: int, place: Place) -> tuple[Path, str]:
    """The recipe as a file of the user's: `descend train FILE` is the same run."""
    recipe = make_recipe(state, place)
    recipe = replace(recipe, loop=replace(recipe.loop, steps=max(1, steps), eval_every=max(1, min(100, steps))))
    used: dict[str, set[str]] = {}
    body = spell(recipe, used)
    lines = [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(used.items())]
    text = "\n".join(['"""A network of the playground."""', "", *lines, "", f"RECIPE = {body}", ""])
    name = hashlib.sha256(text.encode()).hexdigest()[:8]
    path = place.own / "playground" / f"playground_{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path, text


def spell(value: Any, used: dict[str, set[str]]) -> str:
    """A frozen value as Python: only what differs from its defaults."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return repr(value)
    used.setdefault(type(value).__module__, set()).add(type(value).__name__)
    parts = []
    for field in dataclasses.fields(value):
        own = getattr(value, field.name)
        default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        if field.init and own != default:
            parts.append(f"{field.name}={spell(own, used)}")
    return f"{type(value).__name__}({', '.join(parts)})"
