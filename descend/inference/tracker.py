"""Tracking: a detector looks at each frame of a video, and its objects keep their identities from frame to frame.

    for pixels, objects in follow(open_video("street.mp4"), detector):          one frame at a time

What is held is one frame and the tracks that live; the length of the video does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch

from descend.errors import Mistake
from descend.inference import open_run
from descend.inference.detector import Detected, Detector
from descend.metrics.tracking.sequence import Trajectories
from descend.ops.tracking.tracker import Tracker, Tracking
from descend.views.boxes import draw_objects, spread_colours

COLOURS = spread_colours(24)


class FindsObjects(Protocol):
    """What is needed of a detector."""

    @property
    def labels(self) -> tuple[str, ...]: ...

    def detect(self, images: Sequence[np.ndarray], least: float | None = None) -> list[Detected]: ...


class TrackedObject(NamedTuple):
    """One object of one frame."""

    frame: int
    """1, 2, .."""
    id: int
    label: str
    score: float
    """Of its last detection."""
    box: tuple[float, float, float, float]
    """x0, y0, x1, y1 in pixels of the frame."""
    seen: bool
    """Whether it was detected in this frame; else the box is predicted."""


def open_detector(run: str, checkpoint: str | int = "best", labels: Sequence[str] = ()) -> Detector:
    """A run that finds objects."""
    answerer = open_run(run, checkpoint, labels)
    if not isinstance(answerer, Detector):
        raise Mistake(f"{run} holds no detector of several objects; train one: descend train yolo-scenes")
    return answerer


def follow(
    frames: Iterable[np.ndarray], detector: FindsObjects, rules: Tracking
) -> Iterator[tuple[np.ndarray, list[TrackedObject]]]:
    """Each frame (h, w, 3) with its objects."""
    tracker = Tracker(rules)
    for number, pixels in enumerate(frames, start=1):
        (found,) = detector.detect([pixels], rules.least)
        boxes = torch.tensor([o.box for o in found.objects], dtype=torch.float64).reshape(-1, 4)
        scores = torch.tensor([o.score for o in found.objects], dtype=torch.float64)
        classes = torch.tensor([detector.labels.index(o.label) for o in found.objects], dtype=torch.long)
        tracker.update(boxes, scores, classes)
        told = tracker.tell()
        rows = zip(*(part.tolist() for part in told), strict=True)
        yield (
            pixels,
            [
                TrackedObject(number, identity, detector.labels[k], score, tuple(box), seen)
                for box, identity, k, score, seen in rows
            ],
        )


def draw_tracks(pixels: np.ndarray, objects: Sequence[TrackedObject]) -> np.ndarray:
    """A frame with its boxes; an identity has the same colour in every frame."""
    tags = [f"{o.id} {o.label}" for o in objects]
    return draw_objects(pixels, [o.box for o in objects], tags, [COLOURS[o.id % len(COLOURS)] for o in objects])


def as_trajectories(objects: Sequence[TrackedObject]) -> Trajectories:
    """For scores and files."""
    return Trajectories(
        torch.tensor([o.frame for o in objects], dtype=torch.long),
        torch.tensor([o.id for o in objects], dtype=torch.long),
        torch.tensor([o.box for o in objects], dtype=torch.float64).reshape(-1, 4),
    )
