"""Where a DETR's queries look: the map of a query that found an object, and the object.

    A = softmax(Q Kᵀ / √d_h)          of the last decoder layer: queries over the places of the image, mean of the heads
    peak of a query                   the place where A is largest, on a grid of 8 × 8
    inside                            the middle of that place lies in the box of the object that the query found

A small DETR is trained on images of 64×64 pixels with two rectangles, bright and dark ones, on noise; queries are
matched to objects by the set loss. What would be so by chance is measured with the same maps: how often the peak lies
in the box of an object of the same size in the mirrored image. MF says that attention maps of DETR are easy to show
and shows none. The bounds were set, and sizes and rates chosen, on seeds 10 and 11.

Systems: attention-maps-analysis
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.contracts import Boxes
from descend.interpret.attention import query_maps
from descend.labs._evidence import Above, AtLeast
from descend.labs._train import train
from descend.losses.detection.set_prediction import SetPrediction, match_truth
from descend.models.detr import Detr, DetrConfig
from descend.models.resnet import ResNetConfig
from descend.nn.attention.maps import attention_maps
from descend.ops.boxes import to_corners
from descend.weights.labels import Labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-C.91",)
PRINTED = "The attention maps of DETR and ViT are easy to show, those of a YOLO are hard."
CLAIM = "The map of a DETR's query that found an object has its peak inside the object."
PREDICTIONS = (
    AtLeast(
        "peaks inside",
        0.7,
        "of 10 queries that found the box of their object, at least 7 look most at a place in it; fewer refute it",
    ),
    AtLeast("beyond chance", 0.3, "it is so 30 points more often than for the box mirrored in the image"),
)
CONTROLS = (Above("found", 0.6, "the DETR finds the objects: of 10 boxes 6 have a matched query with IoU of ½"),)
SCOPE = "two rectangles on noise, a grid of 8 × 8 places, the mean of four heads in the last of two layers"
SIDE, GRID, OBJECTS, QUERIES = 64, 8, 2, 6
BATCH, RATE, TESTED = 24, 1e-3, 200
BUDGET = 60.0
PRICE = 20  # steps that a second of one core buys
LEAST = 800


def draw_scenes(count: int, random: torch.Generator) -> tuple[Tensor, Boxes]:
    """Images (b, 3, 64, 64) of two rectangles that do not touch, one in each half, and their boxes in pixels."""
    x = 0.3 * torch.randn(count, 3, SIDE, SIDE, generator=random)
    size = torch.randint(14, 27, (count, OBJECTS, 2), generator=random)
    room = torch.tensor([SIDE // 2, SIDE]) - size
    corner = (torch.rand(count, OBJECTS, 2, generator=random) * room).long()
    corner[:, 1, 0] += SIDE // 2
    classes = torch.randint(2, (count, OBJECTS), generator=random)
    boxes = torch.cat([corner, corner + size], -1)
    for image, (found, kinds) in enumerate(zip(boxes.tolist(), classes.tolist(), strict=True)):
        for (x0, y0, x1, y1), kind in zip(found, kinds, strict=True):
            x[image, :, y0:y1, x0:x1] += 2.0 if kind else -2.0
    return x, Boxes(boxes.float(), classes, torch.ones(count, OBJECTS))


def build() -> Detr:
    backbone = ResNetConfig(stem=16, widths=(16, 32), depths=(1, 1), block="basic")
    return Detr(
        DetrConfig(
            backbone=backbone, norm="batch", queries=QUERIES, width=64, depth=1, decoder_depth=2, heads=4,
            decoder_heads=4, hidden=128, decoder_hidden=128, dropout=0.0, labels=Labels(("dark", "bright")),
        )
    )  # fmt: skip


def measure(seed: int, budget: float) -> dict[str, Any]:
    """How often the peak is inside, of matched queries that found their object."""
    steps = max(4, round(PRICE * budget))
    torch.manual_seed(seed)
    model, random, loss = build(), torch.Generator().manual_seed(seed), SetPrediction(no_object=0.2)

    def step() -> Tensor:
        x, truth = draw_scenes(BATCH, random)
        found = loss(model(x), truth, torch.empty(0))
        return torch.stack(list(found.terms.values())).sum()

    train(model.train(), step, steps, RATE)
    inside, mirrored, found, areas, peaks = look(model.eval(), *draw_scenes(TESTED, random), loss)
    kept = found >= 0.5
    return {
        "steps": steps,
        "found": float(kept.double().mean()),
        "inside": float(inside[kept].double().mean()) if kept.any() else float("nan"),
        "inside, mirrored": float(mirrored[kept].double().mean()) if kept.any() else float("nan"),
        "share of the image": float(areas.mean()),
        "peak": float(peaks.mean()),
        "objects": len(inside),
    }


@torch.no_grad()
def look(model: Detr, x: Tensor, truth: Boxes, loss: SetPrediction) -> tuple[Tensor, ...]:
    """Of each matched query: peak inside, peak inside the mirrored box, IoU, the box's share of the image, the peak."""
    name = f"decoder.{len(model.decoder) - 1}.cross"
    maps = query_maps(attention_maps(model, x)[name].mean(1, keepdim=True), GRID, GRID)[:, 0]  # (b, n, 8, 8)
    found = model(x)
    targets, pairs = match_truth(found, truth, loss.cost)
    last = pairs.layer == found.boxes.shape[0] - 1
    image, query, which = pairs.image[last], pairs.query[last], pairs.object[last]
    place = maps[image, query].flatten(1).argmax(1)
    peak = torch.stack([place % GRID, place // GRID], -1).double().add(0.5) / GRID
    box = to_corners(targets.boxes[image, which]).double()
    mirrored = torch.cat([1 - box[:, 2:], 1 - box[:, :2]], -1)
    ours = to_corners(found.boxes[-1][image, query]).double()
    overlap = (torch.minimum(box[:, 2:], ours[:, 2:]) - torch.maximum(box[:, :2], ours[:, :2])).clamp(min=0).prod(-1)
    area = lambda b: (b[:, 2:] - b[:, :2]).prod(-1)
    return (
        is_inside(peak, box),
        is_inside(peak, mirrored),
        overlap / (area(box) + area(ours) - overlap),
        area(box),
        maps[image, query].flatten(1).amax(1),
    )


def is_inside(point: Tensor, box: Tensor) -> Tensor:
    return ((point >= box[:, :2]) & (point <= box[:, 2:])).all(-1)


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    return {
        "peaks inside": numbers["inside"],
        "beyond chance": numbers["inside"] - numbers["inside, mirrored"],
        "found": numbers["found"],
    }


def needs(numbers: dict[str, Any]) -> float:
    return 0.0 if numbers["steps"] >= LEAST else LEAST / PRICE


def figure(numbers: dict[str, Any]) -> Figure:
    """Inside, beside chance."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(5, 3.2), layout="constrained")
    axes = fig.subplots()
    names = ("inside", "inside, mirrored", "share of the image")
    axes.bar(range(3), [numbers[name] for name in names], width=0.6)
    axes.set_xticks(range(3), ["peak in its object", "in the mirrored box", "share of the image"])
    axes.set_ylim(0, 1)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
