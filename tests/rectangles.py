"""Images of coloured rectangles on noise, with their boxes: small enough that a detector learns them in seconds."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.contracts import Boxes
from descend.ops.boxes import pairwise_iou


def make_rectangles(images: int, side: int = 48, seed: int = 0, most: int = 2) -> tuple[Tensor, Boxes]:
    """x (b, 3, side, side) and the truth: 1 to `most` rectangles an image, none in the first. The class is
    the channel."""
    g = torch.Generator().manual_seed(seed)
    x = 0.1 * torch.randn(images, 3, side, side, generator=g)
    boxes, classes = torch.zeros(images, most, 4), torch.full((images, most), -1)
    for i in range(images):
        for j in range(int(torch.randint(1, most + 1, (), generator=g)) if i else 0):  # the first image is empty
            w, h = torch.randint(side // 4, side // 2, (2,), generator=g).tolist()
            half = side // most  # objects stand in bands of their own, so that they do not cover each other
            w = min(w, half)
            x0 = int(torch.randint(half - w + 1, (), generator=g)) + j * half
            y0 = int(torch.randint(side - h + 1, (), generator=g))
            c = int(torch.randint(3, (), generator=g))
            x[i, c, y0 : y0 + h, x0 : x0 + w] += 2.0
            boxes[i, j], classes[i, j] = torch.tensor([x0, y0, x0 + w, y0 + h]).float(), c
    return x, Boxes(boxes, classes, (classes >= 0).float())


def part_of(truth: Boxes, rows: slice) -> Boxes:
    """Some of the images."""
    return Boxes(*(part[rows] for part in truth))


def count_hits(found: Boxes, truth: Boxes, least: float = 0.5) -> tuple[int, int, int]:
    """Right objects with a score from `least` on (right class, IoU ≥ ½, each truth once), how many are true, and how
    many were found."""
    right = 0
    sure = found.scores >= least
    for i in range(len(truth.classes)):
        real, kept = truth.classes[i] >= 0, sure[i]
        iou = pairwise_iou(truth.boxes[i][real], found.boxes[i][kept])
        same = truth.classes[i][real][:, None] == found.classes[i][kept][None]
        right += int(((iou >= 0.5) & same).any(dim=1).sum())
    return right, int((truth.classes >= 0).sum()), int(sure.sum())
