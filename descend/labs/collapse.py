"""What keeps joint embeddings without negatives from collapse: BYOL's predictor, SimSiam's stopped gradient.

    BYOL                            2 − 2 cos(q(z₁), z'₂), z' by a slow copy           healthy
    BYOL without predictor          2 − 2 cos(z₁, z'₂)                                 collapses
    BYOL without both               2 − 2 cos(z₁, sg z₂)                               collapses
    SimSiam                         −cos(q(z₁), sg z₂)                                 healthy: BYOL without a slow copy
    SimSiam, not stopped            −cos(q(z₁), z₂)                                    collapses

Everything else is the same: the network, the two views of handwritten digits, the steps. A collapsed network gives
every image the same vector: the spread of the unit vectors of held-out digits, 1 for random directions, goes to 0,
while the loss goes to its lowest value, which is why a loss does not tell. The projector is that of BYOL everywhere:
SimSiam's own ends in a batch norm, behind which a collapse shows as a few directions instead of one point.

Systems: byol, simsiam
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.data.images.digits import load_digits_split
from descend.data.images.labelled import Preprocessing
from descend.data.images.views import LoadViews, Viewing, shuffle_loaded
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.labs._evidence import AtLeast, Below
from descend.losses.metric_learning import cosine
from descend.metrics.neighbours import fitted_probe_accuracy, spread
from descend.models.contrastive_encoder import ContrastiveEncoderConfig, PredictiveEncoder
from descend.optim.rules import SGD
from descend.optim.schedules import Constant
from descend.tasks.representation import JointEmbedding
from descend.tasks.self_prediction import BYOL, SimSiam

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.115", "DLN-C.116")
PRINTED = (
    "BYOL: asymmetry (the original adds a predictor) prevents collapse without negatives; SimSiam:"
    " stop-gradient on one side does."
)
CLAIM = "Without a predictor BYOL collapses, and so does SimSiam whose gradient is not stopped; with them they do not."
PREDICTIONS = (
    AtLeast(
        "spread kept",
        0.5,
        "Spread of the embeddings of BYOL and SimSiam, the lesser; 1 for random directions.",
    ),
    Below(
        "BYOL's ablations",
        0.25,
        "The larger spread of both ablations of BYOL as a share of BYOL's; near 1 they would not collapse.",
    ),
    Below("SimSiam not stopped", 0.25, "The same for SimSiam without the stopped gradient."),
)
SCOPE = "Handwritten digits of 8×8, small networks, BYOL's projector everywhere."
WAYS = ("BYOL", "BYOL without predictor", "BYOL without both", "SimSiam", "SimSiam, not stopped")
CONFIG = ContrastiveEncoderConfig(image=(1, 8, 8), width=8, hidden=64, outputs=32, predictor=16)
BATCH, MOMENTUM, RATE = 128, 0.9, 0.1
BUDGET = 12.0
PRICE = 5  # steps, of each of the five, that a second of one core buys
LEAST = 50  # steps below which nothing is said


def unstopped(p: Tensor, z: Tensor) -> Tensor:
    """−cos(p, z) with its gradient into both."""
    return -cosine(p, z)


def make_task(way: str, steps: int) -> JointEmbedding:
    """The task of one of the ways."""
    model = PredictiveEncoder(CONFIG)
    if way.startswith("SimSiam"):
        return SimSiam(model) if way == "SimSiam" else SimSiam(model, unstopped)
    if way != "BYOL":
        model.predictor = nn.Identity()
    # Without a slow copy the target is the network of the step before, all through the run.
    return BYOL(model, 0.0, 10**9) if way == "BYOL without both" else BYOL(model, MOMENTUM, steps)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Loss, spread and probe of each way."""
    steps = max(2, round(PRICE * budget))
    splits = load_digits_split(valid=0.3)
    prepare = Preprocessing.fit(splits)
    views = Viewing(crop=0.7, flip=0.0, turn=15.0, colour=0.4, grey=0.0).augment()
    x, known = prepare.standardize(splits.valid.x), prepare.standardize(splits.train.x)
    columns: dict[str, list[float]] = {"loss": [], "spread": [], "probe": []}
    curves = {}
    for way in WAYS:
        torch.manual_seed(seed)
        task = make_task(way, steps)
        stream = shuffle_loaded(splits.train, LoadViews(splits.train.x, views, prepare), BATCH, seed, (0, 1))
        loop = Loop(steps, batch=BATCH, seed=seed, precision="float32", compile="off")
        rule = SGD(RATE, momentum=0.9, weight_decay=1e-4)
        run = Training(Parts(task, task.model, stream, (), {"model": rule}), loop, Constant(), World())
        every, seen = max(1, steps // 12), []
        for step in range(steps):
            found = run.advance()
            if step % every == 0 or step == steps - 1:
                seen.append((step + 1, spread(project(task, x))))
        curves[way] = seen
        h, reference = task.eval().embed(x).detach(), task.embed(known).detach()
        columns["loss"].append(found["loss"])
        columns["spread"].append(seen[-1][1])
        columns["probe"].append(fitted_probe_accuracy(h, splits.valid.y, reference, splits.train.y))
    return {"ways": list(WAYS), **columns, "steps": steps, "curves": curves}


@torch.no_grad()
def project(task: JointEmbedding, x: Tensor) -> Tensor:
    """z of images, with the batch's own statistics."""
    found: Tensor = task.model.project(x)
    return found


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    byol, bare, neither, simsiam, unstopped = numbers["spread"]
    return {
        "spread kept": min(byol, simsiam),
        "BYOL's ablations": max(bare, neither) / byol,
        "SimSiam not stopped": unstopped / simsiam,
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """The spread on the way."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7, 3.8), layout="constrained")
    axes = fig.subplots()
    for way, seen in numbers["curves"].items():
        axes.plot(*zip(*seen, strict=True), label=way, linestyle="-" if way in ("BYOL", "SimSiam") else "--")
    axes.set(xlabel="step", ylabel="spread of unit vectors", ylim=(0, 1.1))
    axes.legend()
    return fig
