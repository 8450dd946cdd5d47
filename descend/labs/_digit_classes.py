"""Handwritten digits for labs: standardized images in two parts, a training on one, and accuracy on the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.data.images.digits import load_digits_split
from descend.labs._train import train

MEAN, SPREAD = 0.305, 0.376
Loss = Callable[[Tensor, Tensor], Tensor]
"""The mean loss of a batch of images and their classes."""


class Digits(NamedTuple):
    """Images (n, 1, side, side) and classes (n)."""

    x: Tensor
    y: Tensor

    def draw(self, n: int, seed: int) -> Digits:
        """`n` of them, others for each seed."""
        rows = torch.randperm(len(self.y), generator=torch.Generator().manual_seed(seed))[:n]
        return Digits(self.x[rows], self.y[rows])


def read_digits(side: int = 8) -> tuple[Digits, Digits]:
    """1,258 images to learn from and 539 others; the cut is always the same."""
    splits = load_digits_split()

    def standardize(x: Tensor) -> Tensor:
        x = (x - MEAN) / SPREAD
        return x if side == x.shape[-1] else F.interpolate(x, size=(side, side), mode="bilinear")

    held = torch.cat([splits.valid.x, splits.test.x]), torch.cat([splits.valid.y, splits.test.y])
    return Digits(standardize(splits.train.x), splits.train.y), Digits(standardize(held[0]), held[1])


def train_on(model: nn.Module, loss: Loss, given: Digits, steps: int, lr: float, seed: int, batch: int = 64) -> None:
    """Step down the loss of random batches."""
    random = torch.Generator().manual_seed(seed)

    def step() -> Tensor:
        rows = torch.randint(len(given.y), (batch,), generator=random)
        return loss(given.x[rows], given.y[rows])

    train(model.train(), step, steps, lr)


def train_classes(model: nn.Module, given: Digits, steps: int, lr: float, seed: int) -> None:
    """Down the cross-entropy of the labels."""
    train_on(model, lambda x, y: F.cross_entropy(model(x), y), given, steps, lr, seed)


@torch.no_grad()
def measure_accuracy(model: nn.Module, held: Digits) -> float:
    return float((model.eval()(held.x).argmax(1) == held.y).double().mean())
