"""The books' tables of detectors, as data: what is printed, not what is true. Nothing in the library relies on them.

They contradict each other and the models themselves: YOLO-v8s makes 300 images a second in one table and 60 in another;
the ranking "DETR above YOLO" is not that of the column mAP; YOLO-v8n has 3.16 M parameters, not 2.7, and Swin-L alone
has 195 M, more than the printed 153.6 of a whole detector. `find_contradictions` lists what the tables themselves show.

`find_disputed` does the same for the two comparisons of YOLO, DETR and RT-DETR (MF 25.5 and 26.5), with what the models
here say of them; `labs/sets_and_grids.py` measures what can be measured.

Systems: detector-benchmarks, detector-comparison-lab
"""

from __future__ import annotations

from typing import NamedTuple

from descend.errors import Mistake
from descend.theory.detector_cost import latency_ms


class PrintedModel(NamedTuple):
    """A row of MF 28.5.1, COCO test-dev."""

    name: str
    map: float
    fps: float
    parameters: float
    """In millions."""


PRINTED = (
    PrintedModel("YOLO-v8n", 37.3, 80, 2.7),
    PrintedModel("YOLO-v8s", 44.9, 60, 11.2),
    PrintedModel("YOLO-v8m", 50.2, 30, 25.9),
    PrintedModel("YOLO-v8l", 52.9, 15, 43.7),
    PrintedModel("DETR", 45.0, 20, 41.3),
    PrintedModel("DETR-R101", 47.3, 12, 60.2),
    PrintedModel("Swin-T DETR", 49.7, 15, 38.7),
    PrintedModel("Swin-L DETR", 56.7, 5, 153.6),
)

THROUGHPUT = {
    "YOLO-v8s": {"V100": 300.0, "CPU": 10.0},
    "DETR": {"V100": 20.0, "TPU": 50.0, "CPU": 0.5},
    "Swin-T": {"V100": 40.0, "TPU": 80.0, "CPU": 2.0},
}
"""Images a second, MF 27.5.2; a cell that is missing is empty in the book."""

BUDGET = {
    "YOLO": {"backbone": 15.0, "total": 20.0},
    "DETR": {"backbone": 100.0, "encoder": 50.0, "decoder": 20.0, "total": 170.0},
    "Swin-T": {"backbone": 80.0, "head": 10.0, "total": 90.0},
}
"""GFLOPs, MF 27.5.1; YOLO at 416 × 416, the others at 480 × 640."""

FAMILIES = ("YOLO", "DETR", "ViT-Det")
MATRIX = {
    "real-time on GPU": ("yes", "partial", "no"),
    "real-time on CPU": ("no", "no", "no"),
    "edge devices": ("yes", "no", "no"),
    "small objects": ("weak", "strong", "strong"),
    "high resolution": ("slow", "OK", "very slow"),
    "dense scenes": ("weak", "OK", "good"),
    "training time": ("24h", "500h", "1000h+"),
    "convergence": ("fast", "slow", "very slow"),
    "hyperparameter sensitivity": ("medium", "high", "very high"),
    "anchor-dependent": ("no", "no", "no"),
    "NMS": ("yes", "no", "no"),
    "post-processing": ("5-10 ms", "1 ms", "1 ms"),
    "interpretability": ("low", "medium", "medium"),
    "attention visualisation": ("hard", "easy", "easy"),
}
"""MF 29.1."""

COMPARISON = {
    "architecture": ("CNN backbone and grid head", "CNN and Transformer"),
    "speed": ("fast", "moderate"),
    "accuracy": ("good", "excellent"),
    "small objects": ("weak", "strong"),
    "training time": ("24-48 h", "500 h"),
    "anchor-free": ("yes", "yes"),
    "NMS": ("yes", "no"),
    "real-time": ("yes", "depends on hardware"),
}
"""MF 25.5: YOLO, DETR."""

SUMMARY = {
    "architecture": ("CNN only", "CNN and Transformer", "hybrid"),
    "inference": ("static grid", "set prediction", "set prediction"),
    "post-processing": ("NMS", "NMS-free", "NMS-free"),
    "attention": ("none", "global (all scales)", "S5 only"),
    "query start": ("fixed anchors", "learned embeddings", "encoder features"),
}
"""MF 26.5: YOLOv8, DETR, RT-DETR."""


class Disputed(NamedTuple):
    """A cell of the comparisons that something else denies."""

    claim: str
    against: str


def find_disputed() -> list[Disputed]:
    """The cells of both comparisons that another table of the book, or a paper's own figures, deny."""
    found = []
    if COMPARISON["anchor-free"][0] == "yes" and SUMMARY["query start"][0] == "fixed anchors":
        found.append(Disputed("25.5: YOLO is anchor-free", "26.5: YOLOv8 starts from fixed anchors (it has none)"))
    if COMPARISON["real-time"][0] == "yes" and look_up("real-time on CPU")["YOLO"] == "no":
        found.append(Disputed("25.5: YOLO is real-time", "29.1: not on a CPU"))
    detr, better = find_printed("DETR"), [row.name for row in PRINTED[:4] if row.map > find_printed("DETR").map]
    if COMPARISON["accuracy"] == ("good", "excellent") and better:
        found.append(Disputed("25.5: DETR is more accurate", f"28.5.1: {', '.join(better)} are above its {detr.map}"))
    if "all scales" in SUMMARY["attention"][1]:
        found.append(Disputed("26.5: DETR attends to all scales", "25.2: one map of stride 32, flattened"))
    if COMPARISON["small objects"] == ("weak", "strong"):
        found.append(Disputed("25.5: DETR is strong on small objects", "Carion et al. (2020): it is weaker there"))
    return found


def look_up(criterion: str) -> dict[str, str]:
    """What the comparison matrix says of each family."""
    if criterion not in MATRIX:
        raise Mistake(f"the matrix has no criterion {criterion!r}; it has {', '.join(MATRIX)}")
    return dict(zip(FAMILIES, MATRIX[criterion], strict=True))


def find_printed(name: str) -> PrintedModel:
    """A row by its name."""
    for row in PRINTED:
        if row.name == name:
            return row
    raise Mistake(f"the table has no model {name!r}; it has {', '.join(row.name for row in PRINTED)}")


def choose_printed(
    fps: float = 0, latency: float = float("inf"), megabytes: float = float("inf"), weight: float = 4
) -> list[PrintedModel]:
    """The rows that reach so many images a second, within a latency (ms) and a size at so many bytes a weight."""
    return [
        row
        for row in PRINTED
        if row.fps >= fps and latency_ms(row.fps) < latency and row.parameters * weight < megabytes
    ]


def find_contradictions() -> list[str]:
    """Where the tables and rankings of the book contradict each other, computed from the tables."""
    yolos = [row for row in PRINTED if row.name.startswith("YOLO")]
    detr, small = find_printed("DETR"), find_printed("YOLO-v8s")
    found = []
    for row in yolos:
        if row.map > detr.map:
            found.append(f"accuracy: ranked below DETR, {row.name} has {row.map} mAP against {detr.map}")
        if row.fps < detr.fps:
            found.append(f"speed: ranked above DETR, {row.name} has {row.fps:g} images/s against {detr.fps:g}")
    if THROUGHPUT["YOLO-v8s"]["V100"] != small.fps:
        found.append(
            f"speed: YOLO-v8s makes {THROUGHPUT['YOLO-v8s']['V100']:g} images/s in 27.5.2, {small.fps:g} in 28.5.1"
        )
    if THROUGHPUT["YOLO-v8s"]["CPU"] < 30 and look_up("real-time on CPU")["YOLO"] == "no":
        found.append("CPU: section 24.2 calls YOLO real-time on a CPU; the matrix and 10 images/s deny it")
    return found
