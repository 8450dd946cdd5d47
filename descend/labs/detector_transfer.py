"""A detector that has learned one set of classes starts another one: it needs fewer steps, and fewer images.

    learn       circles, crosses and rings, many scenes
    then        the three other shapes, few scenes, equally many steps each:
      scratch   new weights, all of them trained
      started   the learned weights with new class heads; the backbone learns at a tenth of the rate
      frozen    the same, with a backbone that stays as it is

    steps to a score   the first evaluation at which mAP at IoU 0.5 is at least the best that the detector from scratch
                       ever has

The book (MF-C.81) does not say what is frozen nor how much faster it is; the prediction was set before the first run:
both ways that start from what is learned need at most half of the steps, and no number of the frozen backbone moves.
One change after a first run, on a seed that is not recorded: at a tenth of the rate for everything that was taken over,
neck and boxes too, it was slower than from scratch, so the lower rate is the backbone's alone.

Systems: detection-training-loop
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.contracts import Boxes
from descend.data.streams.arrays import generator
from descend.data.toys.scenes import COLOURS, SHAPES, draw_scenes
from descend.engine.minimise import minimise
from descend.kinds.start_detector import copy_detector
from descend.labs._evidence import Above, AtLeast, AtMost
from descend.losses.detection.task_aligned import TaskAligned
from descend.metrics.detection.coco import judge_detections
from descend.metrics.detection.evidence import collect
from descend.models.yolo_v8 import YoloV8, YoloV8Config
from descend.nn.transfer import freeze, inside
from descend.optim.by_part import ByPart, Part
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.weights.labels import Labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-C.81",)
PRINTED = (
    "With at most 100,000 labelled images start from a pretrained detector and fine-tune (how much faster is not said)."
)
CLAIM = (
    "A detector that starts from one trained on other classes reaches what training from scratch ends with in at most"
    " half of the steps, with its backbone frozen or not."
)
PREDICTIONS = (
    AtMost(
        "steps needed",
        0.5,
        "Steps to the best score from scratch, as a share of those from scratch; the slower of started and frozen.",
    ),
    AtMost("frozen moved", 0, "How far numbers of the frozen backbone moved."),
    Above("started moved", 0, "How far the backbone moved that was not frozen."),
)
CONTROLS = (
    AtLeast(
        "learned from scratch",
        0.1,
        "The best score from scratch: below it there is nothing to reach.",
    ),
)
SCOPE = "Shapes in scenes of 64×64, 160 images of new classes; one small detector."
RETUNED = (
    "After a first run, on a seed that is not recorded: at a tenth of the rate for everything that"
    " was taken over, neck and boxes too, it was slower than from scratch; the lower rate is now the"
    " backbone's alone."
)
SIDE, BATCH, FEW, MANY, HELD = 64, 16, 160, 1600, 128
EVALUATIONS = 10
LR = 2e-3
BUDGET = 60.0
PRICE = 4.5  # steps of all trainings that a second of one core buys
ENOUGH = 200  # steps below which nothing is claimed
FIRST, SECOND = SHAPES[:3], SHAPES[3:6]
BACKBONE = "stem", "stages", "pool"


def draw(n: int, names: tuple[str, ...], seed: int) -> tuple[Tensor, Boxes]:
    """Scenes about 0 with one to three objects of these shapes; the class is the shape's place in `names`."""
    random = generator(seed)
    kind = torch.randint(len(names), (n, 3), generator=random)
    colour = torch.randint(len(COLOURS), (n, 3), generator=random)
    present = torch.arange(3) < torch.randint(1, 4, (n, 1), generator=random)
    shape = torch.tensor([SHAPES.index(name) for name in names])[kind]
    found = draw_scenes(shape, colour, present, SIDE, random)
    seen = present & (found.box[..., 2:] > found.box[..., :2]).all(dim=-1)
    return 4 * (found.x - 0.5), Boxes(found.box.float(), torch.where(seen, kind, -1), seen.float())


def new(names: tuple[str, ...]) -> YoloV8:
    return YoloV8(YoloV8Config(widths=(8, 16, 24, 32, 48), depths=(1, 1, 1, 1), neck=1, bins=8, labels=Labels(names)))


def learn(model: YoloV8, rule: Any, x: Tensor, truth: Boxes, steps: int, test: tuple[Tensor, Boxes]) -> list[float]:
    """mAP50 on the test scenes, EVALUATIONS times on the way."""
    random, criterion, scores = generator(0, 7), TaskAligned(), []

    def loss() -> Tensor:
        rows = torch.randint(len(x), (BATCH,), generator=random)
        part = Boxes(*(column[rows] for column in truth))
        return criterion(model(x[rows]), part, torch.zeros(BATCH, criterion.chance)).total()

    schedule = Cosine(warmup=20, floor=0.05)
    marks = {round(steps * k / EVALUATIONS) for k in range(1, EVALUATIONS + 1)}
    taken = 0

    def counted() -> Tensor:
        nonlocal taken
        if taken in marks:
            scores.append(judge(model, *test))
        taken += 1
        return loss()

    minimise(model.train(), counted, steps, rule, schedule, clip=10.0)
    return [*scores, judge(model, *test)]


@torch.no_grad()
def judge(model: YoloV8, x: Tensor, truth: Boxes) -> float:
    """mAP50; the model is left in training mode."""
    kept = model.eval().decode(model(x), 0.01)
    model.train()
    return judge_detections(collect(kept, truth), 3).map50


def measure(seed: int, budget: float) -> dict[str, Any]:
    """The course of mAP50 of the three ways, and how many numbers of the frozen backbone moved."""
    torch.manual_seed(seed)
    steps = max(EVALUATIONS, round(PRICE * budget))
    test = draw(HELD, SECOND, 3 * seed + 2)
    source = new(FIRST)
    learn(source, AdamW(lr=LR), *draw(min(MANY, BATCH * steps), FIRST, 3 * seed), steps, draw(8, FIRST, 3 * seed + 2))
    data = draw(FEW, SECOND, 3 * seed + 1)
    found: dict[str, Any] = {"scratch": learn(new(SECOND), AdamW(lr=LR), *data, steps, test)}
    for way, parts in (("started", ()), ("frozen", BACKBONE)):
        model = new(SECOND)
        copy_detector(model, source)
        freeze(model, parts)
        before = copy.deepcopy(model.state_dict())
        rates = (Part(""), *(Part(name, 0.1) for name in BACKBONE))
        found[way] = learn(model, ByPart(AdamW(lr=LR), rates), *data, steps, test)
        found[f"moved_{way}"] = count_moved(model, before)
    best = max(found["scratch"])
    reached = {way: count_steps(found[way], best, steps) for way in ("scratch", "started", "frozen")}
    return {**found, "steps": steps, "steps_to_best": [reached[way] for way in ("scratch", "started", "frozen")]}


def count_moved(model: nn.Module, before: dict[str, Tensor]) -> int:
    """Numbers of the backbone, statistics included, that are not what they were."""
    now = {name: value for name, value in model.state_dict().items() if inside(name, BACKBONE)}
    return sum(int((value != before[name]).sum()) for name, value in now.items())


def count_steps(scores: list[float], bar: float, steps: int) -> int:
    """Steps after which a score is first at least the bar; more than there were where it never is."""
    at = [round(steps * (k + 1) / len(scores)) for k in range(len(scores))]
    return next((step for step, score in zip(at, scores, strict=True) if score >= bar), 2 * steps)


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    scratch, *started = numbers["steps_to_best"]
    return {
        "steps needed": max(started) / scratch,
        "frozen moved": float(numbers["moved_frozen"]),
        "started moved": float(numbers["moved_started"]),
        "learned from scratch": max(numbers["scratch"]),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < ENOUGH else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """mAP50 on the new classes against steps, one line a way."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6.5, 4), layout="constrained")
    axes = fig.subplots()
    for way, color in zip(("scratch", "started", "frozen"), ("0.6", "#d66820", "#2b6cd8"), strict=True):
        scores = numbers[way]
        at = [numbers["steps"] * (k + 1) / len(scores) for k in range(len(scores))]
        axes.plot(at, scores, "o-", color=color, label=way)
    axes.axhline(max(numbers["scratch"]), color="0.8", ls=":")
    axes.set_xlabel("steps on the new classes")
    axes.set_title("mAP at IoU 0.5 on new classes", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
