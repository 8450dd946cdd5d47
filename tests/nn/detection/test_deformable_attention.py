"""Deformable attention: pixel by pixel, its gradients, and what it looks at when it starts."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from descend.nn.detection.deformable_attention import DeformableAttention
from descend.ops.detection.deformable import sample_bilinear, sample_nearest
from tests.close import close

GRIDS = [(4, 5), (2, 3)]


def make(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Values (2, 26, 2, 3), places that also lie outside (2, 3, 2, 2, 2, 2), weights (2, 3, 2, 2, 2)."""
    random = torch.Generator().manual_seed(0)
    values = torch.randn(2, 26, 2, 3, generator=random, dtype=dtype)
    places = torch.rand(2, 3, 2, 2, 2, 2, generator=random, dtype=dtype) * 1.4 - 0.2
    weights = torch.rand(2, 3, 2, 2, 2, generator=random, dtype=dtype)
    return values, places, weights


def read(values: Tensor, level: int, i: int, j: int) -> Tensor:
    """The pixel of a map, or zeros beyond it."""
    rows, columns = GRIDS[level]
    if not (0 <= i < rows and 0 <= j < columns):
        return torch.zeros_like(values[0])
    return values[level * 20 + i * columns + j]


def test_bilinear_by_hand() -> None:
    values, places, weights = make()
    expected = torch.zeros(2, 3, 2, 3, dtype=torch.float64)
    for at in torch.cartesian_prod(*(torch.arange(n) for n in (2, 3, 2, 2, 2))).tolist():
        b, n, h, level, _ = at
        rows, columns = GRIDS[level]
        x, y = places[tuple(at)].tolist()
        x, y = x * columns - 0.5, y * rows - 0.5
        j, i = math.floor(x), math.floor(y)
        for di, dj in ((0, 0), (0, 1), (1, 0), (1, 1)):
            near = abs(1 - di - (y - i)) * abs(1 - dj - (x - j))
            expected[b, n, h] += near * weights[tuple(at)] * read(values[b, :, h], level, i + di, j + dj)
    close(sample_bilinear(values, GRIDS, places, weights), expected.flatten(2))


def test_nearest_by_hand() -> None:
    values, places, weights = make()
    expected = torch.zeros(2, 3, 2, 3, dtype=torch.float64)
    for at in torch.cartesian_prod(*(torch.arange(n) for n in (2, 3, 2, 2, 2))).tolist():
        b, n, h, level, _ = at
        rows, columns = GRIDS[level]
        x, y = places[tuple(at)].tolist()
        j, i = min(max(int(x * columns + 0.5), 0), columns - 1), min(max(int(y * rows + 0.5), 0), rows - 1)
        expected[b, n, h] += weights[tuple(at)] * read(values[b, :, h], level, i, j)
    close(sample_nearest(values, GRIDS, places, weights), expected.flatten(2))


def test_gradients() -> None:
    values, places, weights = (t.requires_grad_() for t in make())
    assert torch.autograd.gradcheck(lambda v, p, w: sample_bilinear(v, GRIDS, p, w), (values, places, weights))
    assert torch.autograd.gradcheck(lambda v, w: sample_nearest(v, GRIDS, places.detach(), w), (values, weights))


@pytest.mark.parametrize("coordinates", [2, 4])
def test_it_starts_on_rays(coordinates: int) -> None:
    """Head i looks in the direction 2π i / h, its p-th point p steps away: pixels of a map, or parts of a box."""
    attn = DeformableAttention(8, 4, 2, 3)
    x, references = torch.randn(1, 2, 8), torch.full((1, 2, 1, coordinates), 0.5)
    places = attn.locate(x, references, GRIDS)
    right = places[0, 0, 0, :, :, 0] - 0.5
    if coordinates == 2:
        close(right, torch.tensor([[1.0, 2, 3]]) / torch.tensor([[5.0], [3.0]]))
    else:
        close(right, torch.tensor([[1.0, 2, 3]] * 2) * 0.5 / 3 * 0.5)
    close(places[0, 0, 2, :, :, 0] - 0.5, -right)


def test_padding_has_no_value() -> None:
    attn, tokens = DeformableAttention(8, 2, 2, 2), torch.randn(1, 26, 8)
    real = torch.ones(1, 26, dtype=torch.bool)
    real[0, 20:] = False
    assert attn.project(tokens, real)[0, 20:].abs().sum() == 0
    close(attn.project(tokens, real)[0, :20], attn.project(tokens)[0, :20])
    with pytest.raises(ValueError, match="multiple"):
        DeformableAttention(8, 3, 2, 2)
