"""Multi-object tracking: detections of each frame become tracks with identities, frame by frame.

    D_t       the detections of frame t
    predict   every track one frame on (`motion.py`)
    match     C_ij = −IoU + λ d, least cost, first the confident detections and then the weak ones (`association.py`)
    matched   corrects its track;                    a track seen `hits` times gets an identity 1, 2, ..
    unmatched detection, confident: a new track;     weak: dropped
    unmatched track: one frame older;                gone after `patience` frames, or at once before it has an identity

The book leaves λ, gating and ageing open: `Tracking` holds them, with their defaults. Weak detections continue a track
but never start one: an object that is half hidden keeps its identity, and noise begins none. Memory does not grow with
the video: a track lives at most `patience` frames without a detection.

Systems: multi-object-tracking
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from descend.ops.tracking.association import association_cost, compare_boxes, match, possible_pairs
from descend.ops.tracking.motion import ConstantVelocity, Motion, Moving, Still
from descend.ranges import Count, NonNegative, Positive, Share, Whole

NOBODY = 0  # the identity of what has none


@dataclass(frozen=True)
class Tracking:
    """What the book does not give."""

    weight: NonNegative = 0.5
    """λ: cost of a distance of one diagonal of the track's box."""
    reach: Positive = 0.5
    """Diagonals between detection and predicted track, at most."""
    overlap: Share = 0.0
    """IoU of detection and predicted track, at least."""
    patience: Whole = 15
    """Frames that a track may be missed."""
    hits: Count = 3
    """Detections before a track has an identity."""
    least: Share = 0.1
    """Score of a detection that may continue a track."""
    confident: Share = 0.5
    """Score of a detection that may start one."""
    coast: Whole = 2
    """Frames without a detection in which a track is still told, where it is predicted."""
    motion: ConstantVelocity | Still = field(default_factory=ConstantVelocity)


class Tracked(NamedTuple):
    """Objects of a frame that have an identity."""

    boxes: Tensor
    """x0, y0, x1, y1 (n, 4)"""
    ids: Tensor
    """1, 2, .. (n)"""
    classes: Tensor
    scores: Tensor
    """Of the last detection (n)."""
    seen: Tensor
    """Whether it was detected in this frame; else its place is predicted (n)."""


class Tracks(NamedTuple):
    """The tracks that live, one row each."""

    state: Moving
    ids: Tensor
    classes: Tensor
    scores: Tensor
    hits: Tensor
    missed: Tensor

    def choose(self, rows: Tensor) -> Tracks:
        return Tracks(self.state.choose(rows), *(part[rows] for part in self[1:]))

    def join(self, other: Tracks) -> Tracks:
        state = Moving(*(torch.cat(pair) for pair in zip(self.state, other.state, strict=True)))
        return Tracks(state, *(torch.cat(pair) for pair in zip(self[1:], other[1:], strict=True)))


class Tracker:
    """One video. `update` with the detections of each frame, in order."""

    def __init__(self, rules: Tracking | None = None):
        self.rules = rules or Tracking()
        self.motion: Motion = self.rules.motion
        self.named = 0
        self.tracks = self.begin(torch.zeros(0, 4), torch.zeros(0), torch.zeros(0, dtype=torch.long))

    def begin(self, boxes: Tensor, scores: Tensor, classes: Tensor) -> Tracks:
        """New tracks, without identities."""
        n = len(boxes)
        zeros = torch.zeros(n, dtype=torch.long)
        return Tracks(self.motion.start(boxes.double()), zeros, classes, scores.double(), zeros + 1, zeros)

    def update(self, boxes: Tensor, scores: Tensor | None = None, classes: Tensor | None = None) -> Tensor:
        """Detections x0, y0, x1, y1 (n, 4), their scores and classes (n) -> identities (n), 0 for what has none."""
        n = len(boxes)
        boxes = boxes.detach().cpu().double().reshape(n, 4)
        scores = torch.ones(n).double() if scores is None else scores.detach().cpu().double()
        classes = torch.zeros(n, dtype=torch.long) if classes is None else classes.detach().cpu().long()
        before = self.tracks._replace(state=self.motion.predict(self.tracks.state))
        found, taken = self.associate(boxes, scores, classes, before)
        after = self.correct(before, boxes, scores, found, taken)
        started = self.start_rows(scores, found)
        fresh = self.begin(boxes[started], scores[started], classes[started])
        rows = torch.cat([torch.where(found >= 0)[0], started])  # the detection of each track that was seen
        whose = torch.cat([found[found >= 0], len(after.ids) + torch.arange(len(started))])
        alive = self.age(after.join(fresh))
        ids = torch.full((n,), NOBODY)
        ids[rows] = alive.ids[whose]
        kept = (alive.missed <= self.rules.patience) & ((alive.ids > NOBODY) | (alive.missed == 0))
        self.tracks = alive.choose(torch.where(kept)[0])
        return ids

    def associate(self, boxes: Tensor, scores: Tensor, classes: Tensor, tracks: Tracks) -> tuple[Tensor, Tensor]:
        """The track of each detection (n), −1 for none; and whether each track (m) has one."""
        rules = self.rules
        iou, distance = compare_boxes(boxes, tracks.state.boxes())
        cost = association_cost(iou, distance, rules.weight)
        possible = possible_pairs(iou, distance, rules.reach, rules.overlap) & (classes[:, None] == tracks.classes)
        found = torch.full((len(boxes),), -1)
        taken = torch.zeros(len(tracks.ids), dtype=torch.bool)
        weak = (scores >= rules.least) & (scores < rules.confident)
        for chosen in (scores >= rules.confident, weak):
            rows, columns = match(cost, possible & chosen[:, None] & ~taken)
            found[rows] = columns
            taken[columns] = True
        return found, taken

    def correct(self, tracks: Tracks, boxes: Tensor, scores: Tensor, found: Tensor, taken: Tensor) -> Tracks:
        """Tracks with a detection take it in; the others are one frame older."""
        rows = torch.where(found >= 0)[0]
        columns = found[rows]
        better = self.motion.correct(tracks.state.choose(columns), boxes[rows])
        mean, covariance, last = tracks.state.mean.clone(), tracks.state.covariance.clone(), tracks.scores.clone()
        mean[columns], covariance[columns], last[columns] = better.mean, better.covariance, scores[rows]
        missed = torch.where(taken, 0, tracks.missed + 1)
        return tracks._replace(
            state=Moving(mean, covariance), scores=last, hits=tracks.hits + taken.long(), missed=missed
        )

    def start_rows(self, scores: Tensor, found: Tensor) -> Tensor:
        """The detections that start a track."""
        return torch.where((found < 0) & (scores >= self.rules.confident))[0]

    def age(self, tracks: Tracks) -> Tracks:
        """Identities for those that were seen often enough, in the order of their tracks."""
        due = (tracks.ids == NOBODY) & (tracks.hits >= self.rules.hits)
        ids = torch.where(due, self.named + due.cumsum(0), tracks.ids)
        self.named += int(due.sum())
        return tracks._replace(ids=ids)

    def tell(self) -> Tracked:
        """The objects of the frame that `update` saw last, filtered; with those that coast."""
        known = torch.where((self.tracks.ids > NOBODY) & (self.tracks.missed <= self.rules.coast))[0]
        t = self.tracks.choose(known)
        return Tracked(t.state.boxes(), t.ids, t.classes, t.scores, t.missed == 0)
