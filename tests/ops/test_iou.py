from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from descend.ops.boxes import pairwise_iou
from descend.ops.iou import (
    complete_iou,
    complete_iou_whole,
    distance_iou,
    generalized_iou,
    pairwise_generalized_iou,
    shape_difference,
    shape_weight,
)
from tests.close import close

FORMS = (generalized_iou, distance_iou, complete_iou, complete_iou_whole)


def pairs(n: int = 50, seed: int = 0, spread: float = 10) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    low = torch.rand(2, n, 2, generator=random, dtype=torch.float64) * spread
    boxes = torch.cat([low, low + 1 + torch.rand(2, n, 2, generator=random, dtype=torch.float64) * 5], dim=-1)
    return boxes[0], boxes[1]


def by_hand(a: list[float], b: list[float]) -> tuple[float, float, float]:
    """GIoU, DIoU and CIoU of two boxes, with plain numbers."""
    across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(across, 0) * max(down, 0)
    sides = [(box[2] - box[0], box[3] - box[1]) for box in (a, b)]
    union = sides[0][0] * sides[0][1] + sides[1][0] * sides[1][1] - both
    wide, high = max(a[2], b[2]) - min(a[0], b[0]), max(a[3], b[3]) - min(a[1], b[1])
    iou = both / union
    rho = ((a[0] + a[2] - b[0] - b[2]) / 2) ** 2 + ((a[1] + a[3] - b[1] - b[3]) / 2) ** 2
    far = rho / (wide**2 + high**2)
    v = 4 / math.pi**2 * (math.atan(sides[1][0] / sides[1][1]) - math.atan(sides[0][0] / sides[0][1])) ** 2
    alpha = v / (1 - iou + v) if v else 0
    return iou - (wide * high - union) / (wide * high), iou - far, iou - far - alpha * v


@pytest.mark.system("iou-losses")
@pytest.mark.system("iou-losses", "giou", "diou", "ciou")
@pytest.mark.parametrize("spread", [2.0, 30.0])
def test_the_formulas_by_hand(spread: float) -> None:
    a, b = pairs(spread=spread)
    expected = torch.tensor([by_hand(*two) for two in zip(a.tolist(), b.tolist(), strict=True)], dtype=torch.float64)
    for form, column in zip((generalized_iou, distance_iou, complete_iou), expected.T, strict=True):
        close(form(a, b), column)
    close(complete_iou_whole(a, b), expected[:, 2])
    close(pairwise_generalized_iou(a, b).diagonal(), expected[:, 0])


@pytest.mark.parametrize("form", FORMS)
def test_values(form: Callable[[Tensor, Tensor], Tensor]) -> None:
    """1 at equality, never above IoU, within (−1, 1] (CIoU: above −2), symmetric."""
    a, b = pairs(seed=1, spread=40)
    value = form(a, b)
    assert (value <= pairwise_iou(a, b).diagonal() + 1e-12).all()
    assert value.min() > (-2 if form in FORMS[2:] else -1)
    close(form(a, a), torch.ones(50, dtype=torch.float64))
    close(form(b, a), value)
    close(form(a, b * 1.0), value)


@pytest.mark.system("iou-losses", "giou", "ciou")
def test_special_boxes() -> None:
    side = torch.tensor([[0.0, 0, 2, 2], [2, 0, 4, 2], [0, 0, 4, 2]])
    close(generalized_iou(side[0], side[2]), torch.tensor(0.5))  # the hull is the union: GIoU = IoU
    close(generalized_iou(side[0], side[1]) + 1, torch.tensor(1.0))  # they touch and fill the hull
    a, b = pairs(seed=2)
    square = torch.cat([a[:, :2], a[:, :2] + b[:, 2:] - b[:, :2]], dim=-1)  # the shapes of b at other places
    close(complete_iou(square, b), distance_iou(square, b))


@pytest.mark.system("iou-losses", "disjoint")
@pytest.mark.parametrize("form", FORMS)
def test_gradients(form: Callable[[Tensor, Tensor], Tensor]) -> None:
    """As by differences; disjoint boxes have one, too, where IoU has none. α of CIoU is held fixed."""
    a, b = pairs(6, seed=3, spread=2)
    far = b + 50
    for other in (b, far):
        x = a.clone().requires_grad_()
        if form is not complete_iou:
            assert torch.autograd.gradcheck(lambda x: form(x, other), (x,))
        (slope,) = torch.autograd.grad(form(x, other).sum(), x)
        assert (slope.abs().sum(dim=1) > 1e-6).all()
    x = a.clone().requires_grad_()
    (none,) = torch.autograd.grad(pairwise_iou(x, far).sum(), x)
    assert not none.any()


@pytest.mark.system("iou-losses", "ciou")
def test_no_gradient_through_the_weight_of_the_shape() -> None:
    a, b = pairs(6, seed=4, spread=2)
    x, y = a.clone().requires_grad_(), a.clone().requires_grad_()
    (short,) = torch.autograd.grad(complete_iou(x, b).sum(), x)
    (whole,) = torch.autograd.grad(complete_iou_whole(y, b).sum(), y)
    assert (short - whole).abs().max() > 1e-4
    alpha = shape_weight(pairwise_iou(a, b).diagonal(), shape_difference(a, b))
    z = a.clone().requires_grad_()
    (expected,) = torch.autograd.grad((distance_iou(z, b) - alpha * shape_difference(z, b)).sum(), z)
    close(short, expected)


@pytest.mark.parametrize("form", FORMS)
def test_boxes_without_area(form: Callable[[Tensor, Tensor], Tensor]) -> None:
    """A point, a line, corners the wrong way round: finite values and gradients."""
    x = torch.tensor([[1.0, 1, 1, 1], [1, 1, 3, 1], [3, 3, 1, 1], [0, 0, 0, 0]], requires_grad=True)
    for other in (torch.zeros(4), torch.tensor([0.0, 0, 2, 2]), torch.tensor([1.0, 1, 1, 1])):
        value = form(x, other)
        (slope,) = torch.autograd.grad(value.sum(), x)
        assert value.isfinite().all()
        assert slope.isfinite().all()
