"""A few plain scenes with exact boxes, and what every criterion must keep: sums that split, images without objects, and
a loss that a model can learn."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from descend.contracts import Boxes, Criterion, count_units
from descend.ops.boxes import pairwise_iou
from tests.close import close

COLOURS = torch.tensor([[2.0, -1.0, -1.0], [-1.0, 2.0, -1.0], [-1.0, -1.0, 2.0]])


def draw_scenes(images: int = 4, side: int = 64, most: int = 3, seed: int = 0, least: int = 12) -> tuple[Tensor, Boxes]:
    """Plain rectangles of three colours on noise: x (images, 3, side, side), and where they are. The last image is
    empty when there are more than two."""
    generator = torch.Generator().manual_seed(seed)
    x = 0.1 * torch.randn(images, 3, side, side, generator=generator)
    boxes, classes = torch.zeros(images, most, 4), torch.full((images, most), -1)
    for i in range(images - (images > 2)):
        for j in range(1 + i % most):
            size = torch.randint(least, side // 2, (2,), generator=generator)
            low = (torch.rand(2, generator=generator) * (side - size)).long()
            kind = (i + j) % 3
            x[i, :, low[1] : low[1] + size[1], low[0] : low[0] + size[0]] = COLOURS[kind][:, None, None]
            boxes[i, j], classes[i, j] = torch.cat([low, low + size]).float(), kind
    return x, Boxes(boxes, classes, (classes >= 0).float())


def take(truth: Boxes, rows: slice) -> Boxes:
    return Boxes(*(part[rows] for part in truth))


def cut(found: Any, rows: slice, images: int) -> Any:
    """What a model found, of some images: tensors whose first axis is the image are cut."""
    parts = [cut_part(part, rows, images) for part in found]
    return type(found)(*parts)


def cut_part(part: Any, rows: slice, images: int) -> Any:
    if isinstance(part, Tensor):
        return part[rows] if part.dim() > 1 and len(part) == images else part
    if isinstance(part, list):
        return [cut_part(one, rows, images) for one in part]
    return part


def check_split(found: Any, truth: Boxes, criterion: Criterion) -> None:
    """Every term of a batch is the mean of its parts', weighed by their units."""
    images = len(truth.classes)
    u = torch.zeros(images, criterion.chance)
    whole = criterion(found, truth, u).terms
    pieces = [slice(0, 1), slice(1, images)]
    units = [float(count_units(take(truth, rows))) for rows in pieces]
    parts = [criterion(cut(found, rows, images), take(truth, rows), u[rows]).terms for rows in pieces]
    for name, value in whole.items():
        close(sum(n * part[name] for n, part in zip(units, parts, strict=True)) / sum(units), value)


def check_empty(model: nn.Module, criterion: Criterion, side: int = 64) -> None:
    """No object in an image, none in a batch, no room for any: a finite loss with a gradient."""
    for m in (3, 0):
        none = Boxes(torch.zeros(2, m, 4), torch.full((2, m), -1), torch.zeros(2, m))
        model.zero_grad()
        loss = criterion(model(torch.randn(2, 3, side, side)), none, torch.zeros(2, criterion.chance)).total()
        assert torch.isfinite(loss)
        loss.backward()
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def overfit(
    model: Any, criterion: Criterion, scenes: tuple[Tensor, Boxes], steps: int = 60, lr: float = 5e-3
) -> tuple[float, float]:
    """The loss before and after some steps on one batch."""
    x, truth = scenes
    u = torch.zeros(len(x), criterion.chance)
    rule = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr, fused=True)
    seen = []
    for _ in range(steps):
        loss = criterion(model(x), truth, u).total()
        rule.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        rule.step()
        seen.append(float(loss.detach()))
    return seen[0], seen[-1]


@torch.no_grad()
def share_found(model: Any, scenes: tuple[Tensor, Boxes], least: float = 0.3, iou: float = 0.5) -> tuple[float, float]:
    """Recall and precision on scenes: a prediction is right where it overlaps an object of its class."""
    x, truth = scenes
    boxes, classes, scores = model.decode(model(x), least)
    same = (classes[:, :, None] == truth.classes[:, None]) & (truth.classes[:, None] >= 0)
    good = (pairwise_iou(boxes, truth.boxes) >= iou) & same
    predicted, real = (classes >= 0) & (scores >= least), truth.classes >= 0
    recall = good.any(dim=1).sum() / real.sum()
    precision = good.any(dim=2).sum() / predicted.sum().clamp_min(1)
    return float(recall), float(precision)
