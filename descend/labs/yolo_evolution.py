"""What each YOLO changed: the formulations of v1, v2, v3 and v4 on one set of scenes.

    v1 → v2    sizes as they are → p_w e^{t_w} with anchors: positive by construction; a cell may hold several objects
    v2 → v3    softmax → a logistic answer for each class; one grid → three
    v3 → v4    plain residual stages → CSP stages; squared errors of the code → complete IoU

All learn the same scenes, where the colour is the class and half of the scenes have small objects, for equally many
steps of equal batches. Measured on new scenes: mAP at IoU 0.5, the share of small objects that are found (right class,
IoU above ½), and the share of predicted sizes that are negative. Beside them: the mean best IoU of anchors by k-means
and of as many that are spread evenly over the sizes; the least loss of two labels at once under a softmax and under
logistic classes; the multiplications of a residual stage and of its CSP form.
MF names the changes (24.1.6), DLN says that the later versions mend the limits of the first (A.183). mAP from v2 to v4
is shown and not judged: their backbones differ.

Systems: yolo-evolution
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from descend.contracts import Boxes
from descend.data.streams.arrays import generator
from descend.data.toys.scenes import COLOURS, scenes
from descend.labs._evidence import Above, AtLeast, AtMost, Below, Within
from descend.labs._train import train
from descend.losses.detection.yolo_v1 import YoloV1Loss
from descend.losses.detection.yolo_v2 import YoloV2Loss
from descend.losses.detection.yolo_v3 import YoloV3Loss, independent_loss
from descend.losses.detection.yolo_v4 import YoloV4Loss
from descend.metrics.detection.coco import judge_detections
from descend.metrics.detection.evidence import collect
from descend.models.yolo_v1 import YoloV1, YoloV1Config
from descend.models.yolo_v2 import YoloV2, YoloV2Config
from descend.models.yolo_v3 import YoloV3, YoloV3Config
from descend.models.yolo_v4 import YoloV4, YoloV4Config
from descend.nn.detection.csp import CspEntryBlock, DarknetResidual, leaky_unit
from descend.ops.boxes import area, pairwise_iou
from descend.ops.detection.priors import fit_priors, mean_best_iou
from descend.weights.labels import Labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-C.39", "DLN-A.183")
PRINTED = (
    "v1 to v2: direct sizes become log-offsets (positive); v2 to v3: softmax becomes per-class"
    " sigmoid; v3 to v4: CSP backbone; later versions mend the limits of the first."
)
CLAIM = (
    "Direct sizes (v1) come out negative, sizes by an exponential (v2 on) never; logistic classes hold two labels at"
    " once where a softmax ends at 2 ln 2; a CSP stage needs about half of the multiplications; anchors by k-means fit"
    " boxes better than even ones; and small objects are found better on three grids with anchors (v3) than by v1."
)
PREDICTIONS = (
    Above("v1 negative", 0.01, "The share of predicted sizes that are negative in v1."),
    AtMost("later negative", 0, "The same in v2 to v4: never."),
    Above(
        "softmax on two labels",
        2 * math.log(2) - 1e-3,
        "The least loss of two labels at once under a softmax: 2 ln 2 less a thousandth.",
    ),
    Below("logistic on two labels", 0.01, "The same with logistic classes."),
    Within("CSP saves", 0.4, 0.6, "The share of multiplications that a CSP stage saves."),
    Above("anchors", 0, "Mean best IoU of anchors by k-means less that of even ones."),
    Above("small objects", 0.05, "The share of small objects found by v3 less that by v1."),
)
CONTROLS = (AtLeast("learned", 0.2, "The best mAP50: below it no version learned the task."),)
SCOPE = "Scenes of 64×64, small networks; mAP from v2 to v4 is shown and not judged, their backbones differ."
SIDE, BATCH, HELD, TRAINED = 64, 16, 96, 1600
RADII = (0.06, 0.10), (0.12, 0.24)
"""Of small objects and of others, as shares of the side."""
SMALL = 14.0**2
"""Pixels below which an object is small."""
BUDGET = 60.0
PRICE = 5.0  # steps of all four that a second of one core buys
ENOUGH = 120  # steps below which nothing is claimed
UNITS = 8  # residual units of the stages whose cost is compared
NAMES = Labels(COLOURS)


def formulations(anchors: tuple[float, ...]) -> dict[str, tuple[Any, Any]]:
    """Name -> model and criterion; six anchors as w, h, .. from small to large."""
    layers: dict[str, Any] = {"kernels": (3, 3, 3, 3), "strides": (2, 2, 2, 1), "pools": (1, 1, 1, 1)}
    first = YoloV1Config(
        (3, SIDE, SIDE), (16, 32, 48, 24), **layers, hidden=192, dropout=0.0, norm="batch", coding="sizes", labels=NAMES
    )
    sizes: dict[str, Any] = {"stem": 8, "widths": (16, 24, 32, 32, 32), "depths": (1,) * 5, "anchors": anchors}
    return {
        "v1": (YoloV1(first), YoloV1Loss()),
        "v2": (YoloV2(YoloV2Config(3, (16, 24, 32, 48), (1, 1, 1, 3), 16, anchors, labels=NAMES)), YoloV2Loss()),
        "v3": (YoloV3(YoloV3Config(**sizes, labels=NAMES)), YoloV3Loss()),
        "v4": (YoloV4(YoloV4Config(**sizes, labels=NAMES)), YoloV4Loss()),
    }


def draw(n: int, seed: int) -> tuple[Tensor, Boxes]:
    """Scenes (n, 3, s, s) about 0 and their objects: half of the scenes have small ones."""
    parts = [scenes(n // 2, SIDE, generator(seed, k), (1, 3), radius) for k, radius in enumerate(RADII)]
    x = 4 * (torch.cat([part.x for part in parts]) - 0.5)
    boxes, colours, present = (
        torch.cat([getattr(part, name) for part in parts]) for name in ("box", "colour", "present")
    )
    present = present & (area(boxes) > 0)
    return x, Boxes(boxes.float(), torch.where(present, colours, -1), present.float())


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Scores of the four formulations after equally many steps, and what can be counted."""
    steps = max(4, round(PRICE * budget))
    x, truth = draw(min(TRAINED, BATCH * steps), seed)
    new = draw(HELD, seed + 1000)
    real = truth.boxes[truth.classes >= 0]
    sizes = real[:, 2:] - real[:, :2]
    priors = fit_priors(sizes, 6, seed).sizes
    even = torch.linspace(float(sizes.min()), float(sizes.max()), 6)[:, None].expand(6, 2)
    columns: dict[str, list[Any]] = {name: [] for name in ("version", "map50", "small", "negative")}
    torch.manual_seed(seed)
    for name, (model, criterion) in formulations(tuple(priors.flatten().tolist())).items():
        learn(model, criterion, x, truth, steps, seed)
        for column, value in zip(columns, (name, *judge(model, *new)), strict=True):
            columns[column].append(value)
    plain, csp = count_stages()
    return {
        **columns,
        "steps": steps,
        "anchors_kmeans": mean_best_iou(sizes, priors),
        "anchors_even": mean_best_iou(sizes, even),
        "two_labels_softmax": learn_two_labels(seed, "softmax"),
        "two_labels_logistic": learn_two_labels(seed, "logistic"),
        "products_plain": plain,
        "products_csp": csp,
    }


def learn(model: nn.Module, criterion: Any, x: Tensor, truth: Boxes, steps: int, seed: int) -> None:
    """So many steps of BATCH scenes, the same for every formulation."""
    random = generator(seed, 7)

    def loss() -> Tensor:
        rows = torch.randint(len(x), (BATCH,), generator=random)
        found: Tensor = criterion(model(x[rows]), Boxes(*(part[rows] for part in truth)), torch.zeros(BATCH, 0)).total()
        return found

    train(model.train(), loss, steps, lr=4e-3)
    model.eval()


@torch.no_grad()
def judge(model: Any, x: Tensor, truth: Boxes) -> tuple[float, float, float]:
    """mAP50, the share of small objects found, and the share of all predicted sizes that are negative."""
    found = model(x)
    kept: Boxes = model.decode(found, 0.05)
    scores = judge_detections(collect(kept, truth), len(NAMES))
    right = (pairwise_iou(truth.boxes, kept.boxes) > 0.5) & (truth.classes[..., None] == kept.classes[:, None])
    small = (truth.classes >= 0) & (area(truth.boxes) < SMALL)
    sizes = found.boxes[..., 2:] - found.boxes[..., :2]
    return scores.map50, float(right.any(dim=2)[small].float().mean()), float((sizes < 0).float().mean())


def learn_two_labels(seed: int, form: str) -> float:
    """The loss of one object that is both of two classes, after 600 steps on its logits."""
    torch.manual_seed(seed)
    z, y = torch.randn(5, dtype=torch.float64, requires_grad=True), torch.tensor([1.0, 1.0, 0.0, 0.0, 0.0]).double()
    loss = (lambda: -(y * z.log_softmax(-1)).sum()) if form == "softmax" else (lambda: independent_loss(z, y))
    rule = torch.optim.Adam([z], 0.1)
    for _ in range(600):
        rule.zero_grad()
        loss().backward()
        rule.step()
    return float(loss().detach())


def count_stages(width: int = 32, side: int = 8) -> tuple[int, int]:
    """Multiplications of UNITS residual units of all channels, and of a CSP block around as many of half of them."""
    half = width // 2
    plain = nn.Sequential(*(DarknetResidual(width, half) for _ in range(UNITS)))
    inner = nn.Sequential(*(DarknetResidual(half, half) for _ in range(UNITS)))
    counts = []
    for stage in (plain, CspEntryBlock(width, width, half, inner, leaky_unit)):
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            stage.eval()(torch.zeros(1, width, side, side))
        counts.append(int(counter.get_total_flops()) // 2)
    return counts[0], counts[1]


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    by = {name: dict(zip(numbers["version"], numbers[name], strict=True)) for name in ("map50", "small", "negative")}
    return {
        "v1 negative": by["negative"]["v1"],
        "later negative": max(by["negative"][name] for name in ("v2", "v3", "v4")),
        "softmax on two labels": numbers["two_labels_softmax"],
        "logistic on two labels": numbers["two_labels_logistic"],
        "CSP saves": 1 - numbers["products_csp"] / numbers["products_plain"],
        "anchors": numbers["anchors_kmeans"] - numbers["anchors_even"],
        "small objects": by["small"]["v3"] - by["small"]["v1"],
        "learned": max(by["map50"].values()),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < ENOUGH else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Bars for each version: mAP50, small objects found, negative sizes."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 3.6), layout="constrained")
    axes = fig.subplots()
    names = {"map50": "mAP at IoU 0.5", "small": "small objects found", "negative": "negative sizes"}
    for k, (name, label) in enumerate(names.items()):
        axes.bar([i + 0.27 * (k - 1) for i in range(len(numbers["version"]))], numbers[name], 0.25, label=label)
    axes.set_xticks(range(len(numbers["version"])), [f"YOLO{v}" for v in numbers["version"]])
    axes.set_ylim(0, 1)
    axes.set_title(f"After {numbers['steps']} steps on one set of scenes")
    axes.legend()
    return fig
