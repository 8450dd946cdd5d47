"""One object, one box: what suppression does for a grid detector and for set prediction, and which parts it takes.

    grid       YOLO (v8 form)     every cell near an object answers; non-maximum suppression keeps one answer
    set        RT-DETR            each object is matched with one query in training, so the others learn to keep silent
      s5       attention on the coarsest level alone, queries from the encoder's features: as published
      all      attention on each of the three levels           none     attention on no level
      learned  queries whose contents are learned, wherever the boxes begin

All learn the same scenes, where the colour is the class, for equally many steps of equal batches. Measured on new
scenes: mAP at IoU 0.5 with and without suppression, on the way and at the end; and duplicates, the answers of a score
of at least 0.3 and the right class that overlap an object by more than half, beyond the first one, for each object that
is found.

MF (25.5, 26.5) claims that set prediction needs no suppression and that it stays so with attention on S5 alone ("it
mathematically proves" is an overstatement: it is measured here). The prediction, written before the first run: without
suppression the grid repeats itself at least once for each object, on average, and loses 0.1 of mAP; each set repeats
itself at most 0.1 times, and suppression changes its mAP by at most 0.02. Which arm has the highest mAP, and which is
first at a given one, is shown and not judged: the books' tables contradict each other there
(`theory/detector_tables.py`).

Systems: detector-comparison-lab
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.contracts import Boxes
from descend.data.streams.arrays import generator
from descend.data.toys.scenes import COLOURS, scenes
from descend.engine.minimise import minimise
from descend.labs._evidence import AtLeast, AtMost
from descend.losses.detection.task_aligned import TaskAligned
from descend.losses.detection.varifocal import VarifocalSetPrediction
from descend.metrics.detection.coco import judge_detections
from descend.metrics.detection.evidence import collect
from descend.models.rt_detr import RTDetr, RTDetrConfig
from descend.models.rt_detr_resnet import RTDetrResNetConfig
from descend.models.yolo_v8 import YoloV8, YoloV8Config
from descend.ops.boxes import area, pairwise_iou
from descend.ops.nms import keep_best
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.weights.labels import Labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-C.54", "MF-C.63")
PRINTED = (
    'Set prediction needs no suppression, and stays so with attention on S5 alone ("mathematically'
    ' proves": an overstatement).'
)
CLAIM = (
    "Set prediction names each object once without suppression, whichever levels have attention and wherever its"
    " queries are from; a grid detector without suppression names it again and again."
)
PREDICTIONS = (
    AtLeast(
        "grid repeats",
        1,
        "Duplicates for each object that the grid finds, without suppression.",
    ),
    AtLeast("grid loses", 0.1, "mAP50 that the grid loses without suppression."),
    AtMost("sets repeat", 0.1, "Duplicates of a set, the worst of four."),
    AtMost("sets change", 0.02, "By how much suppression changes a set's mAP50, the most."),
)
CONTROLS = (AtLeast("learned", 0.3, "The least mAP50 of an arm: below it there is nothing to repeat."),)
SCOPE = (
    "Scenes of 64×64 with few objects, five small detectors. Which arm is best or fastest is shown,"
    " not judged: the books' tables contradict each other."
)
SIDE, BATCH, HELD, TRAINED = 64, 16, 96, 1600
LEAST = 0.3  # the score above which an answer counts as said
TAU = 0.7
BUDGET = 60.0
PRICE = 4.0  # steps of all five trainings that a second of one core buys
EVALUATIONS = 6
ENOUGH = 120  # steps below which nothing is claimed
NAMES = Labels(COLOURS)
SETS = ("s5", "all", "none", "learned")


def make_arms() -> dict[str, tuple[Any, Any]]:
    """Name -> model and criterion."""
    grid = YoloV8Config(widths=(8, 16, 24, 32, 48), depths=(1, 1, 1, 1), neck=1, bins=8, labels=NAMES)
    backbone = RTDetrResNetConfig(stem=8, widths=(16, 24, 32, 48), depths=(1, 1, 1, 1), block="basic")
    s5 = RTDetrConfig(
        backbone=backbone, norm="batch", width=32, heads=4, hidden=64, expansion=0.5, queries=12, decoder_width=32,
        decoder_depth=2, decoder_heads=4, decoder_hidden=64, points=4, denoising=0, labels=NAMES,
    )  # fmt: skip
    levels: dict[str, tuple[int, ...]] = {"s5": (2,), "all": (0, 1, 2), "none": ()}
    sets = {name: RTDetr(replace(s5, attended=attended)) for name, attended in levels.items()}
    sets["learned"] = RTDetr(replace(s5, start="learned"))
    return {"grid": (YoloV8(grid), TaskAligned())} | {
        name: (model, VarifocalSetPrediction()) for name, model in sets.items()
    }


def draw(n: int, seed: int) -> tuple[Tensor, Boxes]:
    """Scenes (n, 3, s, s) about 0, each with one to three objects."""
    found = scenes(n, SIDE, generator(seed), (1, 3), (0.12, 0.24))
    present = found.present & (area(found.box) > 0)
    return 4 * (found.x - 0.5), Boxes(found.box.float(), torch.where(present, found.colour, -1), present.float())


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Of each arm: mAP50 with and without suppression, duplicates, and its course."""
    steps = max(EVALUATIONS, round(PRICE * budget))
    data, new = draw(min(TRAINED, BATCH * steps), seed), draw(HELD, seed + 1000)
    torch.manual_seed(seed)
    names = ("arm", "map50", "map50_bare", "repeats", "repeats_bare", "course")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for name, (model, criterion) in make_arms().items():
        course = learn(model, criterion, *data, steps, seed, new)
        for column, value in zip(columns, (name, *judge(model, *new), course), strict=True):
            columns[column].append(value)
    half = max(columns["map50"]) / 2
    reached = [next((k + 1 for k, score in enumerate(c) if score >= half), 0) for c in columns["course"]]
    return {**columns, "steps": steps, "mark": half, "steps_to_mark": [k * steps // EVALUATIONS for k in reached]}


def learn(
    model: Any, criterion: Any, x: Tensor, truth: Boxes, steps: int, seed: int, new: tuple[Tensor, Boxes]
) -> list[float]:
    """mAP50 with suppression on new scenes, EVALUATIONS times on the way, after steps that are the same for all."""
    random, scores = generator(seed, 7), []

    def loss() -> Tensor:
        rows = torch.randint(len(x), (BATCH,), generator=random)
        part = Boxes(*(column[rows] for column in truth))
        found: Tensor = criterion(model(x[rows]), part, torch.zeros(BATCH, criterion.chance)).total()
        return found

    marks, taken = {steps * k // EVALUATIONS for k in range(1, EVALUATIONS)}, 0

    def counted() -> Tensor:
        nonlocal taken
        if taken in marks:
            scores.append(judge(model, *new)[0])
            model.train()
        taken += 1
        return loss()

    minimise(model.train(), counted, steps, AdamW(lr=2e-3), Cosine(warmup=20, floor=0.05), clip=5.0)
    return [*scores, judge(model, *new)[0]]


@torch.no_grad()
def judge(model: Any, x: Tensor, truth: Boxes) -> tuple[float, float, float, float]:
    """mAP50 with and without suppression, and the answers beyond the first for each object found: with, without."""
    bare = decode_bare(model.eval(), x)
    kept = keep_best(bare.boxes, bare.scores, bare.classes, TAU, 0.01)
    scores = [judge_detections(collect(found, truth), len(NAMES)).map50 for found in (kept, bare)]
    return scores[0], scores[1], count_repeats(kept, truth), count_repeats(bare, truth)


def decode_bare(model: Any, x: Tensor) -> Boxes:
    """What a model says before any suppression: at a threshold of 1 no box deletes another."""
    if isinstance(model, YoloV8):
        found = model(x)
        scores, classes = found.logits.sigmoid().max(dim=-1)
        return keep_best(found.boxes, scores, classes, 1.0, 0.01)
    decoded: Boxes = model.decode(model(x), 0.01)
    return decoded


def count_repeats(found: Boxes, truth: Boxes) -> float:
    """Answers beyond the first for each object that is found."""
    same = (pairwise_iou(truth.boxes, found.boxes) > 0.5) & (truth.classes[..., None] == found.classes[:, None])
    said = (same & (found.scores >= LEAST)[:, None] & (truth.classes >= 0)[..., None]).sum(2)
    return float((said - 1).clamp_min(0).sum() / (said > 0).sum().clamp_min(1))


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    lost = {a: x - y for a, x, y in zip(numbers["arm"], numbers["map50"], numbers["map50_bare"], strict=True)}
    again = dict(zip(numbers["arm"], numbers["repeats_bare"], strict=True))
    return {
        "grid repeats": again["grid"],
        "grid loses": lost["grid"],
        "sets repeat": max(again[arm] for arm in SETS),
        "sets change": max(abs(lost[arm]) for arm in SETS),
        "learned": min(numbers["map50"]),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < ENOUGH else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """mAP50 with and without suppression, repeats, and the course of training."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(11, 3.6), layout="constrained")
    scores, again, course = fig.subplots(1, 3)
    at = range(len(numbers["arm"]))
    for k, (name, label) in enumerate((("map50", "with suppression"), ("map50_bare", "without"))):
        scores.bar([i + 0.36 * (k - 0.5) for i in at], numbers[name], 0.34, label=label)
    scores.set_title("mAP at IoU 0.5")
    scores.legend(frameon=False)
    again.bar(at, numbers["repeats_bare"], color="#d66820")
    again.set_title("answers beyond the first, without suppression")
    for axes in (scores, again):
        axes.set_xticks(at, numbers["arm"])
    steps = [numbers["steps"] * (k + 1) / EVALUATIONS for k in range(EVALUATIONS)]
    for name, values in zip(numbers["arm"], numbers["course"], strict=True):
        course.plot(steps, values, "o-", label=name)
    course.set_title("mAP at IoU 0.5 on the way")
    course.set_xlabel("steps")
    course.legend(frameon=False)
    for axes in (scores, again, course):
        axes.spines[["top", "right"]].set_visible(False)
    return fig
