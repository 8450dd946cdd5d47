"""Clouds in the plane: two classes of equal size, the same for the same seed, and no line between them."""

from __future__ import annotations

import pytest
import torch

from descend.data.toys.plane import Cloud, circles, factory, moons, xor
from descend.theory.perceptron import separable
from tests.close import close


@pytest.mark.parametrize("cloud", [moons, circles, xor, factory])
def test_clouds(cloud: Cloud) -> None:
    x, y = cloud(80, 0.05, 0)
    assert x.shape == (80, 2)
    assert y.bincount().tolist() == [40, 40]
    assert torch.equal(x, cloud(80, 0.05, 0)[0])
    assert not torch.equal(x, cloud(80, 0.05, 1)[0])
    assert not separable(x, 2.0 * y - 1)


def test_shapes_without_noise() -> None:
    x, y = circles(50, 0.0)
    close(x.norm(dim=1), 1 - 0.5 * y)
    x, y = moons(50, 0.0)
    close(x[y == 0].norm(dim=1), torch.ones(25))
    close((x[y == 1] - torch.tensor([1.0, 0.5])).norm(dim=1), torch.ones(25))
    x, y = factory(100)
    assert ((x[:, 1] - x[:, 0]).abs() < 1)[y == 1].all()
    assert ((x[:, 1] - x[:, 0]).abs() >= 1)[y == 0].all()
