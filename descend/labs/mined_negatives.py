"""Which negatives to learn from: all, the most similar ones, or the single hardest from the first step on.

    all          every other image of the batch
    top-k        the 16 most similar
    semi-hard    the most similar that is still less similar than the positive
    hardest      the most similar

A Siamese network learns from two views of handwritten digits without labels. After training the mean cosine of two
views of held-out digits is compared with that of different digits. The hardest negative alone, from random weights, is
a known trap (FaceNet reports it): all vectors fall into one point, where positives and negatives are alike.

Systems: siamese-contrastive, hard-negative-mining
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import normalize

from descend.data.images.digits import load_digits_split
from descend.data.images.labelled import Preprocessing
from descend.data.images.views import LoadViews, Viewing, shuffle_loaded, views_once
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.labs._evidence import AtLeast, Below
from descend.metrics.neighbours import fitted_probe_accuracy
from descend.models.contrastive_encoder import ContrastiveEncoder, ContrastiveEncoderConfig
from descend.ops.mining import Miner, mine_all, mine_hardest, mine_semi_hard, mine_top
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.joint_embedding import Siamese

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.109", "DLN-C.108")
PRINTED = (
    "Choose informative negatives that truly challenge the model, the most similar of another image"
    " (no procedure given)."
)
CLAIM = "Negatives mined with care keep positives above negatives; the hardest alone, from the start, collapse."
PREDICTIONS = (
    AtLeast(
        "lead with care",
        0.1,
        "Mean cosine of positives less that of negatives, the least of three ways.",
    ),
    Below(
        "lead of the hardest",
        0.25,
        "The lead with the hardest alone as a share of that least; near 1 there would be no trap.",
    ),
)
SCOPE = "Handwritten digits of 8×8, one small Siamese network, four ways of mining."
MINERS: dict[str, Miner] = {
    "all": mine_all,
    "top-k": mine_top(16),
    "semi-hard": mine_semi_hard(1.0),
    "hardest": mine_hardest,
}
CONFIG = ContrastiveEncoderConfig(image=(1, 8, 8), width=8, hidden=64, outputs=32)
MARGIN, BATCH = 0.5, 64
BUDGET = 4.0
PRICE = 24  # steps, of each of the four, that a second of one core buys
LEAST = 80  # steps below which nothing is said


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Mean cosines of positives and negatives, and a probe, of each way."""
    steps = max(2, round(PRICE * budget))
    splits = load_digits_split(valid=0.3)
    prepare = Preprocessing.fit(splits)
    views = Viewing(crop=0.8, flip=0.0, turn=15.0, colour=0.3, grey=0.0).augment()
    [held_out] = views_once([{"row": torch.arange(len(splits.valid.y))}], LoadViews(splits.valid.x, views, prepare))
    columns: dict[str, list[float]] = {"positive": [], "negative": [], "probe": []}
    for miner in MINERS.values():
        torch.manual_seed(seed)
        model = ContrastiveEncoder(CONFIG)
        stream = shuffle_loaded(splits.train, LoadViews(splits.train.x, views, prepare), BATCH, seed, (0, 1))
        loop = Loop(steps, batch=BATCH, seed=seed, precision="float32", compile="off")
        parts = Parts(Siamese(model, miner, MARGIN), model, stream, (), {"model": AdamW(2e-3)})
        run = Training(parts, loop, Cosine(warmup=10), World())
        for _ in range(steps):
            run.advance()
        model.eval()
        with torch.no_grad():
            z1, z2 = (normalize(model.project(held_out[name]), dim=1) for name in ("x1", "x2"))
            h, known = (model.features(prepare.standardize(part.x)) for part in (splits.valid, splits.train))
        cosines, n = z1 @ z2.T, len(z1)
        columns["positive"].append(float(cosines.diagonal().mean()))
        columns["negative"].append(float((cosines.sum() - cosines.diagonal().sum()) / (n * n - n)))
        columns["probe"].append(fitted_probe_accuracy(h, splits.valid.y, known, splits.train.y))
    return {"negatives": list(MINERS), **columns, "steps": steps}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    *leads, trapped = (p - n for p, n in zip(numbers["positive"], numbers["negative"], strict=True))
    return {"lead with care": min(leads), "lead of the hardest": trapped / min(leads) if min(leads) > 0 else math.nan}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Both cosines of each way."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7, 3.4), layout="constrained")
    axes = fig.subplots()
    places = torch.arange(len(numbers["negatives"])).numpy()
    axes.bar(places - 0.2, numbers["positive"], 0.4, label="two views of a digit")
    axes.bar(places + 0.2, numbers["negative"], 0.4, label="two digits")
    axes.set_xticks(places, numbers["negatives"])
    axes.set(ylabel="mean cosine")
    axes.legend()
    return fig
