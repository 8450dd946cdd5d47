"""One object: three heads on one backbone, their losses, what they learn, and why one box is not enough."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from descend.data.toys.scenes import COLOURS, SHAPES, one_object
from descend.losses.detection.single_object import classify_and_locate, pixel_loss, see_all, smooth_box, squared_box
from descend.models.localiser import Localiser, LocaliserConfig
from descend.models.task_heads import SeenObject, TaskHeads, TaskHeadsConfig
from descend.ops.boxes import box_iou
from tests.close import close


@pytest.mark.system("single-object-detector")
@pytest.mark.system("single-object-detector", "outputs")
def test_numbers_that_each_task_needs() -> None:
    """1000 classes; 1000 and 4; 21 for each of 224 × 224 pixels."""
    with torch.device("meta"):
        model = TaskHeads(TaskHeadsConfig((3, 224, 224), 1000, 21, (8, 8, 8)))
        found = model(torch.empty(1, 3, 224, 224))
    assert found.logits.shape == (1, 1000)
    assert found.logits.numel() + found.box.numel() == 1004
    assert found.pixels.numel() == 1_053_696
    with torch.device("meta"):
        located = Localiser(LocaliserConfig((3, 32, 32), 1000))(torch.empty(1, 3, 32, 32))
    assert sum(part.numel() for part in located) == 1004


def make_guess() -> tuple[SeenObject, Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    logits, pixels = torch.randn(4, 3, generator=g).double(), torch.randn(4, 5, 6, 7, generator=g).double()
    box, true = torch.rand(4, 4, generator=g).double(), torch.rand(4, 4, generator=g).double()
    y, mask = torch.randint(3, (4,), generator=g), torch.randint(5, (4, 6, 7), generator=g)
    return SeenObject(logits, box, pixels), y, true, mask


@pytest.mark.system("single-object-detector")
@pytest.mark.system("single-object-detector", "summed-loss", "three-heads")
def test_the_losses_are_summed() -> None:
    found, y, true, mask = make_guess()
    z, b, p = (part.numpy() for part in found)
    log_softmax = lambda v, axis: v - np.log(np.exp(v).sum(axis=axis, keepdims=True))
    named = -log_softmax(z, 1)[np.arange(4), y]
    r = np.abs(b - true.numpy())
    squares, smooth = (r**2).sum(axis=1), np.where(r < 0.1, r**2 / 0.2, r - 0.05).sum(axis=1)
    drawn = -np.take_along_axis(log_softmax(p, 1), mask.numpy()[:, None], axis=1).mean(axis=(1, 2, 3))
    close(squared_box(found.box, true), squares)
    close(smooth_box(found.box, true), smooth)
    close(pixel_loss(found.pixels, mask), drawn)
    close(classify_and_locate(found, y, true, 2.0, squared_box), named + 2 * squares)
    close(classify_and_locate(found, y, true), named + 5 * smooth)
    close(see_all(found, y, true, mask, (3.0, 0.5)), named + 3 * smooth + 0.5 * drawn)


@pytest.mark.system("single-object-detector", "three-heads")
def test_every_loss_reaches_the_backbone() -> None:
    torch.manual_seed(0)
    model = TaskHeads(TaskHeadsConfig((3, 16, 16), 3, 4, (4, 6)))
    x, y = torch.randn(4, 3, 16, 16), torch.tensor([0, 1, 2, 0])
    true, mask = torch.rand(4, 4), torch.randint(4, (4, 16, 16))
    found, first = model(x), model.layers[0].conv.weight
    parts = [
        classify_and_locate(found, y, true, 0.0),
        smooth_box(found.box, true),
        pixel_loss(found.pixels, mask),
        see_all(found, y, true, mask, (1.0, 1.0)),
    ]
    grads = [torch.autograd.grad(part.sum(), first, retain_graph=True)[0] for part in parts]
    assert all(g.abs().sum() > 0 for g in grads)
    close(grads[3], grads[0] + grads[1] + grads[2], loosen=5)


def train(model: TaskHeads | Localiser, losses: object, batches: object, steps: int, rate: float = 3e-3) -> None:
    rule = torch.optim.AdamW(model.parameters(), rate)
    for step in range(steps):
        rule.zero_grad()
        losses(model.train(), batches(step)).mean().backward()
        rule.step()


@pytest.mark.system("single-object-detector", "trained")
def test_all_three_are_learned_at_once() -> None:
    """On scenes of one object that it has not seen: each score beside what a constant answer gets."""
    torch.manual_seed(0)
    pairs = list(zip(SHAPES[:3], COLOURS[:3], strict=True))
    seen = one_object(700, 24, torch.Generator().manual_seed(0), pairs)
    x, y, mask = seen.x * 4 - 2, seen.shape[:, 0], seen.mask.clamp_max(3).long()
    box = seen.box[:, 0] / 24
    model = TaskHeads(TaskHeadsConfig((3, 24, 24), 3, 4, (12, 24, 32)))
    rows = lambda step: torch.arange(32) + 32 * (step % 18)
    train(model, lambda m, i: see_all(m(x[i]), y[i], box[i], mask[i]), rows, 100)
    with torch.no_grad():
        found = model.eval()(x[600:])
    accuracy = (found.logits.argmax(1) == y[600:]).float().mean()
    share = torch.bincount(y[600:]).max() / 100
    iou, mean = box_iou(found.box, box[600:]).mean(), box_iou(box[:600].mean(0).expand(100, 4), box[600:]).mean()
    drawn = found.pixels.argmax(1) > 0
    overlap = (drawn & (mask[600:] > 0)).sum() / (drawn | (mask[600:] > 0)).sum()
    whole = (mask[600:] > 0).float().mean()
    assert accuracy > share + 0.3
    assert iou > mean + 0.25
    assert overlap > whole + 0.4


def make_squares(n: int, both: bool, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """A square on the left or on the right, or both: images, both boxes (n, 2, 4) and which side is drawn if one is."""
    g = torch.Generator().manual_seed(seed)
    x, side = 0.05 * torch.randn(n, 3, 24, 24, generator=g), torch.randint(2, (n,), generator=g)
    y0 = torch.randint(2, 15, (n, 2), generator=g)
    x0 = torch.tensor([1, 16]).expand(n, 2)
    place = torch.arange(24)
    for j in range(2):
        rows, columns = place - y0[:, j, None], place - x0[:, j, None]
        square = ((rows >= 0) & (rows < 7))[:, :, None] & ((columns >= 0) & (columns < 7))[:, None, :]
        x[:, 0] += square * (torch.ones(n) if both else (side == j).float())[:, None, None]
    return x, torch.stack([x0, y0, x0 + 7, y0 + 7], dim=-1) / 24, side


@pytest.mark.system("single-object-detector", "several-objects")
def test_with_two_objects_the_box_lies_between_them() -> None:
    """Two squares, left and right; the truth is one of them, at random. The least loss of one box is in the middle,
    over neither. With one square it is found."""
    one, two = [], []
    for both, answer in ((False, one), (True, two)):
        torch.manual_seed(0)
        x, boxes, side = make_squares(384, both, 1)
        model = Localiser(LocaliserConfig((3, 24, 24), 2, (8, 16)))
        rule, g = torch.optim.AdamW(model.parameters(), 5e-3), torch.Generator().manual_seed(2)
        for step in range(120):
            i = torch.arange(32) + 32 * (step % 12)
            which = torch.randint(2, (32,), generator=g) if both else side[i]
            rule.zero_grad()
            squared_box(model.train()(x[i]).box, boxes[i, which]).mean().backward()
            rule.step()
        x, boxes, side = make_squares(100, both, 3)
        with torch.no_grad():
            box = model.eval()(x).box
        iou = box_iou(box[:, None], boxes)
        answer += [box, iou.amax(dim=1).mean() if both else iou[torch.arange(100), side].mean()]
    assert one[1] > 0.6
    assert two[1] < 0.35
    assert ((two[0][:, 0] + two[0][:, 2]) / 2 - 0.5).abs().mean() < 0.1
