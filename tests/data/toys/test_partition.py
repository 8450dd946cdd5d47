"""The planted partition: as many links as asked for, mostly within a class, the same for a seed, of any size."""

from __future__ import annotations

import time

import pytest
import torch

from descend.data.toys.partition import plant_partition


@pytest.mark.parametrize(("classes", "degree", "same"), [(4, 8.0, 0.8), (3, 20.0, 0.5), (2, 6.0, 1.0)])
def test_links_lie_within_a_class_as_often_as_asked(classes: int, degree: float, same: float) -> None:
    x, pairs, y = plant_partition(3000, classes, degree, same)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert len({tuple(pair) for pair in pairs.tolist()}) == len(pairs)
    assert 2 * len(pairs) / 3000 == pytest.approx(degree, rel=0.03)
    within = (y[pairs[:, 0]] == y[pairs[:, 1]]).double().mean()
    assert float(within) == pytest.approx(same + (1 - same) / classes, abs=0.02)
    assert y.bincount().tolist() == pytest.approx([3000 / classes] * classes, abs=1)
    assert len(x) == 3000


def test_features_say_little_alone_and_much_together() -> None:
    """Of a class the mean of many is near its centre; a single node is nearest to the right centre less often."""
    x, _, y = plant_partition(4000, noise=3.0)
    centres = torch.stack([x[y == k].mean(dim=0) for k in range(4)])
    right = (torch.cdist(x, centres).argmin(dim=1) == y).double().mean()
    assert 0.4 < float(right) < 0.8
    exact = plant_partition(4000, noise=0.0)
    assert (torch.cdist(exact.x, centres).argmin(dim=1) == y).all()


def test_the_same_for_a_seed_and_fast_when_large() -> None:
    one, two = plant_partition(500, seed=3), plant_partition(500, seed=3)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert not torch.equal(plant_partition(500, seed=4).x, one.x)
    start = time.process_time()
    assert len(plant_partition(30_000, degree=10.0).pairs) > 140_000
    assert time.process_time() - start < 2
