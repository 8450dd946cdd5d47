"""Boxes that a detector can learn from: what is wrong is named, and mended where there is one way to do it.

    no area, or corners the wrong way round     left out
    wholly outside the image                    left out
    partly outside                              cut to the image (more than `SLACK` pixels are told)
    the same box and class twice                the second is left out
    below 8 pixels at the detector's input      kept, counted

Nothing of this changes the files.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from descend.data.detection.annotated import AnnotatedSet
from descend.data.detection.framing import Framing
from descend.data.detection.objects import Objects
from descend.errors import Mistake

SLACK = 1.0
SMALL = 8  # pixels


def clean(found: AnnotatedSet) -> tuple[Objects, Tensor]:
    """The objects of a folder that can be learned, and which of its records they are (k'). Notes gain the others."""
    objects, notes = found.objects, found.notes
    boxes = objects.boxes
    limit = objects.sizes.flip(1).repeat(1, 2)[objects.owner].double()
    low, high = boxes[:, :2], boxes[:, 2:]
    wrong = (high < low).any(dim=1)
    empty = ~wrong & (high == low).any(dim=1)
    inside = torch.minimum(boxes.clamp_min(0), limit)
    outside = ~wrong & ~empty & ((inside[:, 2:] - inside[:, :2]) <= 0).any(dim=1)
    cut = ~(wrong | empty | outside) & ((inside - boxes).abs() > SLACK).any(dim=1)
    usable = ~(wrong | empty | outside)
    twice = find_twice(torch.cat([boxes, objects.owner[:, None], objects.classes[:, None]], dim=1), usable)
    notes.add("boxes with corners the wrong way round, left out", found.name_records(wrong))
    notes.add("boxes without area, left out", found.name_records(empty))
    notes.add("boxes outside the image, left out", found.name_records(outside))
    notes.add("boxes cut to the image", found.name_records(cut))
    notes.add("the same box twice, left out", found.name_records(twice))
    kept = usable & ~twice
    whole = replace(objects, boxes=inside)
    if not bool(kept.any()):
        raise Mistake(
            f"{found.listed.root}: {len(objects):,} images and not one box that can be learned; correct the labels"
        )
    return whole.keep(kept), kept.nonzero().flatten()


def find_twice(keys: Tensor, among: Tensor) -> Tensor:
    """Which rows (k, d) repeat an earlier one, `among` these (k)."""
    rows = among.nonzero().flatten()
    if not len(rows):
        return torch.zeros_like(among)
    _, group = torch.unique(keys[rows], dim=0, return_inverse=True)
    first = torch.full((int(group.max()) + 1,), len(keys)).scatter_reduce(0, group, rows, "amin")
    twice = torch.zeros_like(among)
    twice[rows] = rows != first[group]
    return twice


def find_small(objects: Objects, framing: Framing) -> Tensor:
    """Which objects have a side below `SMALL` pixels at the detector's input (k)."""
    placed = framing.place(objects.sizes)
    scale = (placed.sizes.double() / objects.sizes).flip(1)[objects.owner]
    return ((objects.boxes[:, 2:] - objects.boxes[:, :2]) * scale < SMALL).any(dim=1)
