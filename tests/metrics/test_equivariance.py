"""Shifts and turns: exact on a circle, broken by borders and strides, softened by pools."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.metrics.equivariance import (
    equivariance_error,
    invariance_error,
    relative_change,
    rotate_images,
    shift_circular,
    shift_zeros,
    turn_quarters,
)
from tests.close import close

SLUG = "translation-equivariance-invariance"


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def conv(**options: object) -> nn.Conv2d:
    torch.manual_seed(0)
    return nn.Conv2d(2, 3, 3, **options).double()  # type: ignore[arg-type]


@pytest.mark.system("translation-equivariance-invariance", "harness", "circular", "stride")
@pytest.mark.system(SLUG)
def test_translation_equivariance_and_its_conditions() -> None:
    x = normal(2, 2, 8, 8)
    move = lambda z: shift_circular(z, (3, -2))
    around, zeros = conv(padding=1, padding_mode="circular"), conv(padding=1)
    assert equivariance_error(around, x, move) < 1e-12
    assert equivariance_error(zeros, x, move) > 0.1
    assert equivariance_error(zeros, x, lambda z: shift_circular(z, (1, 0)), border=2) < 1e-12
    strided = conv(stride=2, padding=1, padding_mode="circular")
    assert (
        equivariance_error(strided, x, lambda z: shift_circular(z, (2, 4)), lambda y: shift_circular(y, (1, 2))) < 1e-12
    )
    halves = [lambda y: y, lambda y: shift_circular(y, (1, 0))]
    assert min(equivariance_error(strided, x, lambda z: shift_circular(z, (1, 0)), after) for after in halves) > 0.1


@pytest.mark.system("translation-equivariance-invariance", "harness", "pooling")
@pytest.mark.system(SLUG)
def test_pooling_softens_a_shift() -> None:
    """S940-DLD.43: a one-pixel shift changes pooled features less; globally pooled circular ones not at all."""
    x, around = normal(4, 2, 16, 16), conv(padding=1, padding_mode="circular")
    x = F.avg_pool2d(x, 3, 1, 1)  # natural images are smooth
    step = lambda z: shift_circular(z, (0, 1))
    bare = relative_change(around, x, step)
    pooled = relative_change(lambda z: F.max_pool2d(around(z), 4), x, step)
    assert pooled < 0.8 * bare
    for whole in (lambda z: around(z).mean((2, 3)), lambda z: around(z).amax((2, 3))):
        assert invariance_error(whole, x, step) < 1e-12


@pytest.mark.system("translation-equivariance-invariance", "turns")
@pytest.mark.system(SLUG)
def test_an_ordinary_convolution_minds_turns() -> None:
    x = normal(1, 2, 8, 8)
    assert equivariance_error(conv(padding=1), x, turn_quarters) > 0.1
    around = nn.Conv2d(1, 1, 3, padding=1, bias=False).double()
    with torch.no_grad():
        around.weight.copy_(torch.tensor([[1.0, 2, 1], [2, 5, 2], [1, 2, 1]]))  # a filter that looks the same turned
    assert equivariance_error(around, x[:, :1], turn_quarters) < 1e-12


def test_motions() -> None:
    x = normal(2, 1, 5, 6)
    assert torch.equal(shift_circular(x, (1, 2))[..., 1:, 2:], x[..., :-1, :-2])
    for v in ((1, 2), (-1, 0), (0, -3), (2, -1), (-5, 0), (7, 7)):
        moved = shift_zeros(x, v)
        expected = torch.zeros_like(x)
        for i in range(5):
            for j in range(6):
                if 0 <= i - v[0] < 5 and 0 <= j - v[1] < 6:
                    expected[..., i, j] = x[..., i - v[0], j - v[1]]
        assert torch.equal(moved, expected)
    square = normal(1, 2, 6, 6)
    for quarters in (1, 2, 3):
        close(rotate_images(square, 90.0 * quarters), turn_quarters(square, quarters))
    close(rotate_images(x, 180.0), turn_quarters(x, 2))
    close(rotate_images(x, 0.0), x)
