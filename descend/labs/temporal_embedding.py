"""Time as the teacher: frames near each other become near in the embedding, and distance grows with the time between.

    positives    two frames of a film at most 8 apart        negatives    frames farther apart, or of other films
    pull 1 − cos(z, z') together, push cos(z, z') below the margin apart                  (`tasks/joint_embedding`)

The film: a bright spot crosses a dark image in 24 frames. Pixels hardly tell how far apart two frames are in time: two
spots that do not overlap are equally far from each other whether little or much time has passed (the lab measures how
the pixels' distance grows, too). After training the mean distance of embeddings is taken for every gap, on films that
were not trained on. They are unit vectors in three dimensions: with a short window the path would go round the sphere,
and come back to where it began.

Systems: siamese-contrastive
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from descend.data.toys.moving import TimePairs, moving_spots
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.labs._evidence import Above, AtLeast
from descend.models.contrastive_encoder import ContrastiveEncoder, ContrastiveEncoderConfig
from descend.ops.mining import mine_all
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.joint_embedding import TemporalSiamese

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.114",)
PRINTED = "Temporal proximity is the positive signal: frames close in time are positives, distant ones negatives."
CLAIM = "Trained on frames that are close in time, the distance of embeddings grows with the time between two frames."
PREDICTIONS = (
    AtLeast(
        "grows",
        0.9,
        "Rank correlation of the time between frames and the distance of embeddings.",
    ),
    Above("nearer to a line", 0, "Linear correlation less that of pixels."),
    AtLeast("far over near", 3, "Distance at the longest gap over that of neighbours."),
    Above("positives alike", 0.3, "Mean cosine of positives less that of negatives."),
)
SCOPE = "Films of a bright spot, 24 frames of 16×16, embeddings on a sphere of three dimensions."
FRAMES, SIDE, WINDOW, MARGIN, BATCH = 24, 16, 8, 0.0, 64
CONFIG = ContrastiveEncoderConfig(image=(1, SIDE, SIDE), width=8, hidden=32, outputs=3)
BUDGET = 5.0
PRICE = 48  # steps that a second of one core buys
LEAST = 100  # steps below which nothing is said


def by_gap(x: Tensor) -> list[float]:
    """The mean distance of frames' vectors (n, T, d) at every gap 1, .., T − 1."""
    x = normalize(x, dim=-1)
    d = torch.cdist(x, x)
    return [float(d.diagonal(gap, 1, 2).mean()) for gap in range(1, x.shape[1])]


def rank_correlation(y: list[float]) -> float:
    """Spearman's correlation of values with their places: 1 where they only grow."""
    rank = torch.tensor(y).argsort().argsort().double()
    place = torch.arange(len(y)).double()
    return float(torch.corrcoef(torch.stack([rank, place]))[0, 1])


def line_correlation(y: list[float]) -> float:
    """Pearson's correlation of values with their places: 1 where they lie on a rising line."""
    return float(torch.corrcoef(torch.stack([torch.tensor(y).double(), torch.arange(len(y)).double()]))[0, 1])


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Distances by gap, before and after training, and of pixels."""
    steps = max(2, round(PRICE * budget))
    random = torch.Generator().manual_seed(seed)
    films, held_out = moving_spots(48, FRAMES, SIDE, random), moving_spots(24, FRAMES, SIDE, random)
    torch.manual_seed(seed)
    model = ContrastiveEncoder(CONFIG)
    task = TemporalSiamese(model, mine_all, MARGIN, WINDOW)
    stream = TimePairs(films, WINDOW, BATCH, seed)
    loop = Loop(steps, batch=BATCH, seed=seed, precision="float32", compile="off")
    run = Training(Parts(task, model, stream, (), {"model": AdamW(2e-3)}), loop, Cosine(warmup=10), World())
    before = by_gap(embed(model, held_out))
    told = [run.advance() for _ in range(steps)][-1]
    found = by_gap(embed(model, held_out))
    pixels = by_gap(held_out.flatten(2))
    return {
        "vectors": ["pixels", "untrained", "trained"],
        "growth": [rank_correlation(y) for y in (pixels, before, found)],
        "line": [line_correlation(y) for y in (pixels, before, found)],
        "near": [y[0] for y in (pixels, before, found)],
        "far": [y[-1] for y in (pixels, before, found)],
        "positive": told["positive"],
        "negative": told["negative"],
        "steps": steps,
        "curves": {"pixels": pixels, "untrained": before, "trained": found},
    }


@torch.no_grad()
def embed(model: ContrastiveEncoder, films: Tensor) -> Tensor:
    """z of every frame (n, T, d)."""
    training = model.training
    found = model.eval().project(films.flatten(0, 1)).unflatten(0, films.shape[:2])
    model.train(training)
    return found


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {
        "grows": numbers["growth"][2],
        "nearer to a line": numbers["line"][2] - numbers["line"][0],
        "far over near": numbers["far"][2] / numbers["near"][2],
        "positives alike": numbers["positive"] - numbers["negative"],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Distance over the gap."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7, 3.8), layout="constrained")
    axes = fig.subplots()
    for name, y in numbers["curves"].items():
        axes.plot(range(1, len(y) + 1), y, label=name)
    axes.set(xlabel="frames between", ylabel="mean distance of unit vectors")
    axes.legend()
    return fig
