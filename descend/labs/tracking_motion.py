"""Tracking with a constant velocity against the book's form, in which a track is where it was in the frame before.

    videos     six boxes that move, bounce and cross, 150 frames; detections are shaken, weak, missed, invented
    missed     5%, 20% and 40% of the boxes in a frame
    trackers   equal in all but the motion: the Kalman filter of `ops/tracking/motion.py`, or none

Measured by MOTA and IDF1 (`metrics/tracking/`), several videos as one. At 5% the bars of a noisy video are asked of the
default tracker: MOTA ≥ 0.93 and IDF1 ≥ 0.95.

Systems: multi-object-tracking
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from descend.data.toys.moving_boxes import MovingBoxes, move_boxes, see_boxes
from descend.labs._evidence import Above, AtLeast
from descend.metrics.tracking.sequence import Trajectories
from descend.metrics.tracking.summary import score_tracks
from descend.ops.tracking.motion import ConstantVelocity, Still
from descend.ops.tracking.tracker import Tracker, Tracking

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-C.101",)
PRINTED = "Detections are assigned to the tracks of the frame before by −IoU + λ d (λ, gating and ageing not given)."
CLAIM = "A constant velocity carries identities through missed frames better than a box that stays where it was."
PREDICTIONS = (
    Above(
        "lead of velocity",
        0,
        "IDF1 with a velocity less that without, the least share missed counts.",
    ),
    AtLeast("MOTA", 0.93, "With a velocity, 5% of the boxes missed."),
    AtLeast("IDF1", 0.95, "The same for IDF1: identities are kept."),
)
SCOPE = "Six boxes in generated videos of 150 frames."
MISSED = (0.05, 0.2, 0.4)
MOTIONS: dict[str, ConstantVelocity | Still] = {"velocity": ConstantVelocity(), "still": Still()}
MOTA, IDF1 = 0.93, 0.95
BUDGET = 20.0
PRICE = 2.0  # seconds of one core for a video, by both trackers at every share that is missed
LEAST = 3


def follow(rules: Tracking, video: MovingBoxes, random: torch.Generator) -> tuple[Trajectories, Trajectories]:
    """The true and the found trajectories of one video."""
    truth = move_boxes(video, random)
    seen = see_boxes(video, truth, random)
    tracker, rows = Tracker(rules), []
    for frame in range(1, video.frames + 1):
        now = seen.frames == frame
        tracker.update(seen.boxes[now], seen.scores[now])
        told = tracker.tell()
        rows.append((torch.full_like(told.ids, frame), told.ids, told.boxes))
    return truth, Trajectories(*(torch.cat(part) for part in zip(*rows, strict=True)))


def measure(seed: int, budget: float) -> dict[str, Any]:
    """MOTA, IDF1 and switches of both, at every share of missed boxes; the same videos for both."""
    videos = max(1, round(budget / PRICE))
    found: dict[str, Any] = {"videos": videos, "missed": list(MISSED)}
    for name, motion in MOTIONS.items():
        scores = []
        for missed in MISSED:
            video = replace(MovingBoxes(), missed=missed)
            randoms = (torch.Generator().manual_seed(1000 * seed + i) for i in range(videos))
            scores.append(score_tracks([follow(Tracking(motion=motion), video, random) for random in randoms]))
        for score in ("mota", "idf1", "hota", "switches"):
            found[f"{name}_{score}"] = [float(one[score]) for one in scores]
    return found


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    pairs = zip(numbers["velocity_idf1"], numbers["still_idf1"], strict=True)
    return {
        "lead of velocity": min(a - b for a, b in pairs),
        "MOTA": numbers["velocity_mota"][0],
        "IDF1": numbers["velocity_idf1"][0],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["videos"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """IDF1 and MOTA against the share that is missed."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 3.2), layout="constrained")
    for axes, score in zip(fig.subplots(1, 2), ("idf1", "mota"), strict=True):
        for name in MOTIONS:
            axes.plot(numbers["missed"], numbers[f"{name}_{score}"], marker="o", label=name)
        axes.set_xlabel("share of boxes missed")
        axes.set_ylabel(score.upper())
        axes.set_ylim(0, 1)
        axes.legend()
    return fig
