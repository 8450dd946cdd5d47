"""Distances of generated to real examples, against scikit-learn and by what they should find."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from descend.metrics.generated import (
    covered,
    cubic_kernel,
    gaussian_kernel,
    kid,
    mmd,
    nearest_distances,
    precision_and_recall,
    reach,
    share_memorised,
)
from tests.close import close


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.system("fid", "beside")
def test_kernels_and_mmd_by_scikit_learn() -> None:
    from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

    x, y = normal(30, 5), normal(20, 5, seed=1) + 0.5
    close(cubic_kernel(x, y), torch.from_numpy(polynomial_kernel(x.numpy(), y.numpy(), degree=3)))
    close(gaussian_kernel(2.0)(x, y), torch.from_numpy(rbf_kernel(x.numpy(), y.numpy(), gamma=1 / 8)))
    k = lambda a, b: polynomial_kernel(a.numpy(), b.numpy(), degree=3)
    within = sum((m.sum() - np.trace(m)) / (len(m) * (len(m) - 1)) for m in (k(x, x), k(y, y)))
    close(kid(x, y), float(within - 2 * k(x, y).mean()))
    with pytest.raises(ValueError, match="at least two rows"):
        kid(x[:1], y)


@pytest.mark.system("fid", "beside")
def test_the_mean_of_kid_does_not_depend_on_n() -> None:
    """Unbiased: over draws of one distribution it is 0 in the mean, for few and for many rows; moved ones are above."""
    for n in (5, 40):
        found = torch.tensor([kid(normal(n, 4, seed=2 * s), normal(n, 4, seed=2 * s + 1)) for s in range(200)])
        assert abs(found.mean()) < 4 * found.std() / 200**0.5
    assert kid(normal(200, 4), normal(200, 4, seed=1) + 1) > 0.5
    assert mmd(normal(200, 4), normal(200, 4, seed=1) + 1, gaussian_kernel(1.0)) > 0.1


@pytest.mark.system("fid", "beside")
def test_precision_and_recall_by_scikit_learn() -> None:
    from sklearn.neighbors import NearestNeighbors

    real, made = normal(60, 3), 0.5 * normal(50, 3, seed=1) + 0.3

    def share(x: Tensor, by: Tensor) -> float:
        radius = NearestNeighbors(n_neighbors=4).fit(by.numpy()).kneighbors(by.numpy())[0][:, 3]
        distance = np.linalg.norm(x.numpy()[:, None] - by.numpy()[None], axis=-1)
        return float((distance <= radius).any(1).mean())

    assert precision_and_recall(real, made) == (share(made, real), share(real, made))
    assert covered(made, made) == 1.0
    with pytest.raises(ValueError, match="more than 3 rows"):
        reach(real[:3])


@pytest.mark.system("fid", "beside")
def test_what_precision_and_recall_tell_apart() -> None:
    """One of two clusters only: precise, with half the recall. Everything and noise besides: the other way."""
    real = torch.cat([normal(100, 2), normal(100, 2, seed=1) + 20])
    half = normal(200, 2, seed=2)
    precision, recall = precision_and_recall(real, half)
    assert precision > 0.9
    assert recall < 0.55
    wide = torch.cat([real + 0.01, 300 * normal(200, 2, seed=3)])
    precision, recall = precision_and_recall(real, wide)
    assert precision < 0.6
    assert recall > 0.95


@pytest.mark.system("fid", "beside")
def test_memorised_examples_are_found() -> None:
    train, held_out, new = (normal(300, 1, 4, 4, seed=s) for s in (0, 1, 2))
    assert share_memorised(new, train, held_out) < 0.05
    copies = train[:100] + 0.01 * normal(100, 1, 4, 4, seed=3)
    assert share_memorised(copies, train, held_out) == 1.0
    half = torch.cat([copies, new[:100]])
    assert 0.5 <= share_memorised(half, train, held_out) < 0.55
    assert nearest_distances(train, train, batch=7).max() < 1e-5
