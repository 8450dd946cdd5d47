"""Which detector to try: the book's four questions, its use cases, and its own table beside them.

    1  more than 30 images a second?     yes: YOLO (without a fitting GPU: YOLO-nano, or TensorRT)    no: question 2
    2  more than 100,000 labelled images?   yes: DETR or Swin-DETR      no: a pretrained YOLO or DETR, fine-tuned
    3  small objects critical?              yes: DETR or Swin           no: YOLO with several scales
    4  attention maps needed?               yes: DETR or ViT            no: YOLO

Questions 3 and 4 are asked whatever the others gave (MF 29.2, Algorithm 4), so recommendations can contradict each
other. The book does not resolve that, and neither does this code: `find_conflicts` shows it. Of the use cases (MF
29.3), driving asks for 30 images a second and recommends YOLO-v8l, which the table lists at 15 (erratum).

Systems: detector-recommender
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

from descend.theory.detector_tables import PrintedModel, choose_printed

REAL_TIME = 30
MANY_LABELS = 100_000


class Recommendation(NamedTuple):
    question: str
    answer: str
    models: tuple[str, ...]
    """Any of these."""
    advice: str = ""


def recommend(
    realtime: bool, gpu: bool, labels: int, small_objects: bool, interpretability: bool
) -> list[Recommendation]:
    """What each question gives, with the question."""
    speed, data = f"more than {REAL_TIME} images a second?", f"more than {MANY_LABELS:,} labelled images?"
    if realtime:
        found = [
            Recommendation(speed, "yes", ("YOLO",))
            if gpu
            else Recommendation(speed, "yes, without a fitting GPU", ("YOLO",), "YOLO-nano, or TensorRT")
        ]
    elif labels > MANY_LABELS:
        found = [Recommendation(data, "yes", ("DETR", "Swin"))]
    else:
        found = [Recommendation(data, "no", ("YOLO", "DETR"), "pretrained, fine-tuned")]
    small, maps = "small objects critical?", "attention maps needed?"
    found.append(
        Recommendation(small, "yes", ("DETR", "Swin"))
        if small_objects
        else Recommendation(small, "no", ("YOLO",), "with several scales")
    )
    found.append(
        Recommendation(maps, "yes", ("DETR", "ViT")) if interpretability else Recommendation(maps, "no", ("YOLO",))
    )
    return found


def find_conflicts(found: list[Recommendation]) -> list[tuple[Recommendation, Recommendation]]:
    """Pairs of recommendations that no model satisfies both of."""
    return [(a, b) for a, b in combinations(found, 2) if not set(a.models) & set(b.models)]


class UseCase(NamedTuple):
    """A use case of MF 29.3: what it needs, and what the book recommends."""

    name: str
    models: tuple[str, ...]
    """Of the table, as far as they are in it."""
    advice: str
    fps: float = 0
    latency: float = float("inf")
    """In ms."""
    megabytes: float = float("inf")
    weight: float = 4
    """Bytes."""

    def fitting(self) -> list[PrintedModel]:
        """The models of the table that meet the needs."""
        return choose_printed(self.fps, self.latency, self.megabytes, self.weight)

    def contradicted(self) -> list[str]:
        """Recommended models that do not meet the needs by the book's own table."""
        good = {row.name for row in self.fitting()}
        return [name for name in self.models if name not in good]


USE_CASES = (
    UseCase("autonomous driving", ("YOLO-v8l",), "a large YOLO with TensorRT; 1920 × 1080, small objects", fps=30),
    UseCase("surveillance", ("DETR",), "batches of frames, day and night", latency=1000),
    UseCase("medical images", ("Swin-L DETR",), "or ViT-Det; test-time augmentation"),
    UseCase("mobile", ("YOLO-v8n",), "INT8", latency=100, megabytes=50, weight=1),
)
