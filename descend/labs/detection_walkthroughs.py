"""The book's two walkthroughs (MF 28.1, 28.2): a toy YOLO and a toy DETR by hand, then trained on five images.

    YOLO   cell [6, 6] of 13 × 13, t = (0.1, 0.2, 0.5, 0.6), anchor 16 × 16   →   centre (208.8, 209.6), 26.4 × 29.2
           L_box = (√26 − √80)² + (√29 − √80)² = 27.4532,  L_obj = 0.01,  L_cls = 0.05,  L = 5 L_box + .. = 137.326
    DETR   query 10 says person with 0.8, its box has GIoU 0.8   →   cost −0.8 + 5 · 0.2 = 0.2,  L = 1.0179

The book prints 2.8 for L_box and 14.06 for L (errata); DETR's 1.018 holds. Then both learn five images of a tall person
or a wide car on noise. The chapter's YOLO loss has no term for the centre: it is trained as printed, and with YOLOv1's
centre term. The claim is that both detectors learn their images; what the printed loss does is told beside it.

Systems: detection-walkthroughs
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.contracts import Boxes
from descend.engine.minimise import take_steps
from descend.labs._evidence import AtLeast, AtMost
from descend.losses.detection.set_prediction import CertainSetPrediction, SetPrediction
from descend.losses.detection.yolo_chapter import YoloChapterLoss, class_error, objectness_error, root_size_loss
from descend.metrics.detection.coco import judge_detections
from descend.metrics.detection.evidence import collect
from descend.models.detr import Detr, DetrConfig
from descend.models.resnet import ResNetConfig
from descend.models.yolo_v2 import YoloV2, YoloV2Config
from descend.ops.boxes import to_corners
from descend.ops.detection.priors import fit_priors
from descend.ops.detection.sets import SetFound
from descend.ops.detection.yolo_grid import decode_cells, make_cells
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.weights.labels import Labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-C.76", "MF-C.77")
PRINTED = (
    "YOLO's L_box = 2.8 and L = 14.06 (errata: 27.4532 and 137.326); DETR's L = 1.018; both are"
    " then trained on five images."
)
CLAIM = "A toy YOLO with the chapter's loss and a centre term, and a toy DETR, each learn five images: mAP50 of 0.95."
PREDICTIONS = (
    AtLeast(
        "mAP50",
        0.95,
        "The worse of the YOLO with a centre term and the DETR on its five images.",
    ),
    AtMost("YOLO's loss off", 1e-3, "The loss by hand less 137.326, in absolute value."),
    AtMost("DETR's loss off", 1e-4, "The loss by hand less 1.01785."),
)
PRINTED_PREDICTIONS = (AtMost("printed loss off", 0.01, "The loss by hand less the 14.06 that is printed."),)
SCOPE = "Five images of 128×128, toy networks; it says that a loss can be learned, not how it generalises."
ARMS = ("YOLO, as printed", "YOLO, with a centre", "DETR")
CLASSES = ("person", "car")
SIDE, IMAGES = 128, 5
BUDGET = 30.0
PRICE = 10  # steps of all three arms that a second of one core buys
ENOUGH = 250  # steps below which nothing is claimed


def follow_yolo() -> dict[str, float]:
    """The walkthrough of 28.1, step by step: the box of the cell, and the loss of what the book rounds it to."""
    grid = make_cells([(13, 13)], [32], torch.full((1, 1, 2), 16.0, dtype=torch.float64))
    t = torch.zeros(169, 4, dtype=torch.float64)
    t[6 * 13 + 6] = torch.tensor([0.1, 0.2, 0.5, 0.6], dtype=torch.float64)
    x, y, w, h = decode_cells(t, grid)[6 * 13 + 6].tolist()
    size, true = torch.tensor([[26.0, 29], [80, 80]], dtype=torch.float64)
    box = float(root_size_loss(size, true))
    objectness = float(objectness_error(torch.tensor(0.9, dtype=torch.float64), torch.tensor(True)))
    kind = float(class_error(torch.tensor([0.8, 0.1], dtype=torch.float64), torch.tensor([1.0, 0.0])))
    rule = YoloChapterLoss()
    total = rule.box * box + rule.objectness * objectness + rule.classes * kind
    return {"x": x, "y": y, "w": w, "h": h, "box": box, "objectness": objectness, "class": kind, "total": total}


def follow_detr() -> dict[str, float]:
    """The walkthrough of 28.2 for query 10, by the text's loss. The true box is one that has a GIoU of 0.8 with its
    own: inside it, as wide, 0.8 as high. "No object" is the last class here and the first in the book."""
    own = torch.tensor([0.4, 0.4, 0.3, 0.3], dtype=torch.float64)
    true = own * torch.tensor([1.0, 1.0, 1.0, 0.8], dtype=torch.float64)
    logits = torch.tensor([0.8, 0.1, 0.1], dtype=torch.float64).log()
    sides = torch.full((1, 4), 100.0, dtype=torch.float64)
    found = SetFound(logits[None, None, None], own[None, None, None], sides)
    truth = Boxes(to_corners(true)[None, None] * 100, torch.zeros(1, 1, dtype=torch.long), torch.ones(1, 1))
    rule = CertainSetPrediction()
    loss = rule(found, truth, torch.empty(1, 0))
    x0, y0, x1, y1 = (to_corners(own) * torch.tensor([640, 480, 640, 480])).tolist()
    cost = -0.8 + rule.box_cost * float(loss.terms["giou"]) / rule.boxes
    return {"cost": cost, "class": float(loss.terms["class"]), "box": float(loss.terms["giou"]),
            "total": float(loss.total()), "x0": x0, "y0": y0, "x1": x1, "y1": y1}  # fmt: skip


def draw_images(seed: int) -> tuple[Tensor, Boxes]:
    """Five images of one or two objects on noise: a person is tall and reddish, a car is wide and bluish."""
    random = torch.Generator().manual_seed(seed)
    x = 0.3 * torch.rand(IMAGES, 3, SIDE, SIDE, generator=random)
    boxes, classes = torch.zeros(IMAGES, 2, 4), torch.full((IMAGES, 2), -1)
    for image in range(IMAGES):
        for place in range(1 + image % 2):  # the second one lies in the other half
            kind = int(torch.randint(2, (1,), generator=random))
            long, short = (torch.rand(2, generator=random) * torch.tensor([16, 8]) + torch.tensor([36, 18])).tolist()
            w, h = (short, long) if kind == 0 else (long, short)
            left, top = torch.rand(2, generator=random).mul(torch.tensor([SIDE - w, SIDE / 2 - h])).tolist()
            box = torch.tensor([left, top + place * SIDE / 2, left + w, top + place * SIDE / 2 + h]).round()
            x0, y0, x1, y1 = box.int().tolist()
            x[image, 2 * kind, y0:y1, x0:x1] += 0.6
            boxes[image, place], classes[image, place] = box, kind
    return x, Boxes(boxes, classes, (classes >= 0).float())


def make_yolo(truth: Boxes) -> YoloV2:
    """One head of a coarse map, three boxes a cell, whose anchors are those of the images."""
    sides = (truth.boxes[..., 2:] - truth.boxes[..., :2])[truth.classes >= 0]
    anchors = tuple(fit_priors(sides, 3).sizes.flatten().tolist())
    widths = (8, 16, 24, 32, 48)
    return YoloV2(YoloV2Config(widths=widths, repeats=(1,) * 5, narrow=8, anchors=anchors, labels=Labels(CLASSES)))


def make_detr() -> Detr:
    backbone = ResNetConfig(stem=8, widths=(8, 16, 24, 32), depths=(1, 1, 1, 1), block="basic")
    return Detr(DetrConfig(
        backbone=backbone, norm="batch", queries=8, width=48, depth=1, decoder_depth=2, heads=4, decoder_heads=4,
        hidden=96, decoder_hidden=96, dropout=0.0, labels=Labels(CLASSES),
    ))  # fmt: skip


def learn(model: Any, criterion: Any, x: Tensor, truth: Boxes, steps: int, rate: float) -> tuple[list[float], float]:
    """Losses on the way, and the mAP50 on the images themselves at the end."""

    def loss() -> Tensor:
        return criterion(model(x), truth, x.new_empty(IMAGES, 0)).total()

    curve = list(take_steps(model, loss, steps, AdamW(rate, weight_decay=1e-4), Cosine(steps // 20, 0.01), clip=1.0))
    with torch.no_grad():
        model.eval()
        found = model.decode(model(x), 0.05, 20)
    return curve, judge_detections(collect(found, truth), len(CLASSES)).map50


def measure(seed: int, budget: float) -> dict[str, Any]:
    """The numbers by hand, and what the three arms have learned."""
    steps = max(2, round(PRICE * budget))
    x, truth = draw_images(seed)
    arms: tuple[tuple[Callable[[], Any], Any, float], ...] = (
        (lambda: make_yolo(truth), YoloChapterLoss(), 2e-3),
        (lambda: make_yolo(truth), YoloChapterLoss(centre=5.0), 2e-3),
        (make_detr, SetPrediction(), 1e-3),
    )
    scores, curves = [], {}
    for name, (make, criterion, rate) in zip(ARMS, arms, strict=True):
        torch.manual_seed(seed)
        curve, score = learn(make(), criterion, x, truth, steps, rate)
        scores.append(score)
        curves[name] = curve[:: max(1, len(curve) // 60)]
    return {"yolo": follow_yolo(), "detr": follow_detr(), "arm": list(ARMS), "map50": scores, "steps": steps,
            "curves": curves}  # fmt: skip


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    score = dict(zip(numbers["arm"], numbers["map50"], strict=True))
    total = numbers["yolo"]["total"]
    return {
        "mAP50": min(score[ARMS[1]], score[ARMS[2]]),
        "YOLO's loss off": abs(total - 137.326),
        "DETR's loss off": abs(numbers["detr"]["total"] - 1.01785),
        "printed loss off": abs(total - 14.06),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < ENOUGH else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Losses against steps, relative to the first, with the mAP50 at the end."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7, 3.9), layout="constrained")
    ax = fig.subplots()
    for name, score in zip(numbers["arm"], numbers["map50"], strict=True):
        curve = numbers["curves"][name]
        ax.semilogy([step * numbers["steps"] / len(curve) for step in range(len(curve))],
                    [value / curve[0] for value in curve], label=f"{name}: mAP50 {score:.2f}")  # fmt: skip
    ax.set_xlabel("step")
    ax.set_ylabel("loss, relative to the first")
    ax.legend()
    return fig
