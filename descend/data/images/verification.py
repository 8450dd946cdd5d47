"""Pairs of images for verification: every image once per epoch, with a partner of the same class or of another.

    u_0 < 0    a partner of the same class, else of another; which one says u_1      half of the pairs are the same

Partner and changes of both images belong to seed, epoch and row. An image may be its own partner only where it is the
only one of its class.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from descend.data.images.labelled import Images, Preprocessing
from descend.data.images.stream import Ahead, Load
from descend.data.streams.arrays import Shuffled
from descend.data.text.masking import uniform

Batch = dict[str, Tensor]


def choose_partners(y: Tensor, rows: Tensor, u: Tensor) -> Tensor:
    """A row of the same class (u_0 < 0) or of another for each of `rows` (b); u (b, 2) in −1..1: -> (b)."""
    order = y.argsort(stable=True)
    place = order.argsort()  # where each row stands in the order of classes
    count = torch.bincount(y)
    first = count.cumsum(0) - count
    c, n = y[rows], len(y)
    share = ((u[:, 1] + 1) / 2).double()
    own = count[c]
    step = (share * (own - 1)).long().clamp(max=(own - 2).clamp(min=0)) + 1
    within = first[c] + (place[rows] - first[c] + step) % own
    rest = n - own
    beyond = (first[c] + own + (share * rest).long().clamp(max=(rest - 1).clamp(min=0))) % n
    same = (u[:, 0] < 0) | (rest == 0)
    return order[torch.where(same, within, beyond)]


@dataclass(frozen=True)
class LoadPairs(Load):
    """{"row", "u", ..} -> {"x1", "x2", "y1", "y2", ..}"""

    y: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long))

    @property
    def chance(self) -> int:
        return 2 + 2 * self.augment.chance

    def __call__(self, batch: Batch) -> Batch:
        batch, one = dict(batch), self.augment.chance
        row, u = batch.pop("row"), batch.pop("u")
        partner = choose_partners(self.y, row, u[:, :2])
        found = {"y1": self.y[row], "y2": self.y[partner]}
        for i, rows in ((1, row), (2, partner)):
            numbers = u[:, 2 + (i - 1) * one : 2 + i * one]
            found[f"x{i}"] = self.prepare.standardize(self.augment(self.pixels[rows], numbers))
        return {**found, **batch}


def shuffle_pairs(images: Images, load: LoadPairs, batch: int, seed: int, where: tuple[int, int]) -> Ahead:
    """Training pairs without end."""
    rows = {"row": torch.arange(len(images.y)), "ids": images.ids}
    return Ahead(Shuffled(rows, batch, seed, *where, chance=load.chance), load)


def pairs_once(images: Images, prepare: Preprocessing, load: LoadPairs, known: bool, size: int = 256) -> list[Batch]:
    """A pair for each image, without changes, always the same; `known` marks pairs that a threshold is fitted to."""
    plain = LoadPairs(images.x, type(load.augment)(()), prepare, images.y)
    found = []
    for rows in torch.arange(len(images.y)).split(size):
        u = 2 * uniform(0, rows, plain.chance) - 1
        marks = torch.full((len(rows),), known)
        found.append(plain({"row": rows, "u": u.float(), "ids": images.ids[rows], "known": marks}))
    return found
