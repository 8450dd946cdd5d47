"""MOTChallenge's text files: a line for each box, of a frame and an identity.

    frame, identity, left, top, width, height, score, class or −1, visibility or −1, −1        frames and pixels from 1

Detections have the identity −1. In a file of the truth the score is a flag: 0 marks a box that is not to be counted.
Boxes here are x0, y0, x1, y1 with the first pixel at 0.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.files import read_text, write_text
from descend.metrics.tracking.sequence import Trajectories
from descend.ops.boxes import from_corner_size, to_corner_size

LEAST = 6  # columns of a line
WHOLE = 2  # columns that are whole numbers


class MotFile(NamedTuple):
    """The boxes of a file, in its order."""

    frames: Tensor
    """1, 2, .. (n)"""
    ids: Tensor
    """(n); −1: a detection without identity"""
    boxes: Tensor
    """x0, y0, x1, y1 (n, 4)"""
    scores: Tensor
    """(n); 1 where the file has none"""
    classes: Tensor
    """(n); −1 where the file has none"""

    def trajectories(self) -> Trajectories:
        return Trajectories(self.frames, self.ids, self.boxes)

    def of_score(self, least: float) -> MotFile:
        """Those with at least this score: of a file of the truth, 1 takes what is to be counted."""
        return MotFile(*(part[self.scores >= least] for part in self))


def read_mot(path: str | Path) -> MotFile:
    """A file of the truth, of results or of detections."""
    path = Path(path)
    rows = [
        read_row(line, f"{path}, line {number}")
        for number, line in enumerate(read_text(path).splitlines(), start=1)
        if line.strip()
    ]
    if not rows:
        raise Mistake(f"{path} has no boxes; a line is: frame, identity, left, top, width, height, score, -1, -1, -1")
    x = torch.tensor(rows, dtype=torch.float64)
    boxes = from_corner_size(x[:, 2:6] - x.new_tensor([1.0, 1.0, 0.0, 0.0]))
    return MotFile(x[:, 0].long(), x[:, 1].long(), boxes, x[:, 6], x[:, 7].long())


def read_row(line: str, where: str) -> list[float]:
    """The first eight numbers of a line; those that it lacks are 1 (score) and −1 (class)."""
    words = [word.strip() for word in line.split("," if "," in line else None)]
    if len(words) < LEAST:
        raise Mistake(f"{where}: {len(words)} numbers; a box needs frame, identity, left, top, width, height")
    numbers = [read_number(word, where) for word in words[:8]]
    if any(number != int(number) for number in numbers[:WHOLE]):
        raise Mistake(f"{where}: frame {words[0]} and identity {words[1]} must be whole numbers")
    if numbers[0] < 1:
        raise Mistake(f"{where}: frame {words[0]}; the first frame is 1")
    if numbers[4] < 0 or numbers[5] < 0:
        raise Mistake(f"{where}: a box of {words[4]} x {words[5]}; width and height are at least 0")
    return [*numbers, 1.0, -1.0][:8] if len(numbers) == LEAST else [*numbers, -1.0][:8]


def read_number(word: str, where: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise Mistake(f"{where}: {word[:40]!r} is not a number") from None
    if not math.isfinite(value) or abs(value) > 2**52:
        raise Mistake(f"{where}: {word[:40]} is out of range")
    return value


def format_mot(tracks: Trajectories, scores: Tensor | None = None) -> str:
    """The lines, by frame and identity; every number exactly as it is."""
    boxes = to_corner_size(tracks.boxes.double()) + torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    told = torch.ones(len(boxes)) if scores is None else scores
    rows = sorted(
        zip(tracks.frames.tolist(), tracks.ids.tolist(), boxes.tolist(), told.tolist(), strict=True),
        key=lambda row: row[:2],
    )
    return "".join(
        f"{frame},{identity},{','.join(f'{v:.15g}' for v in box)},{score:.9g},-1,-1,-1\n"
        for frame, identity, box, score in rows
    )


def write_mot(path: str | Path, tracks: Trajectories, scores: Tensor | None = None) -> None:
    """The same as a file."""
    write_text(Path(path), format_mot(tracks, scores))
