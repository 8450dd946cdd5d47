"""The Fréchet distance: scipy's matrix root, closed forms, and any extractor in Inception's place."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from descend.errors import Mistake
from descend.metrics.frechet import distance_of_images, fid, frechet_distance
from descend.models.inception_v3 import TINY, TINY_INPUT, InceptionV3
from tests.close import close


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.system("fid")
@pytest.mark.system("fid", "symmetric-root")
@pytest.mark.parametrize(("n", "d"), [(40, 3), (30, 8), (5, 8)])
def test_by_scipys_matrix_root(n: int, d: int) -> None:
    """‖μ − ν‖² + tr(C + E − 2 (C E)^½); with fewer rows than numbers the covariances are singular."""
    from scipy.linalg import sqrtm

    x, y = normal(n, d) @ normal(d, d, seed=1) + 1, normal(n + 3, d, seed=2)
    c, e = (np.cov(z.numpy(), rowvar=False) for z in (x, y))
    root = np.trace(np.real(sqrtm(c @ e)))
    expected = float((x.mean(0) - y.mean(0)).square().sum()) + np.trace(c + e) - 2 * root
    close(frechet_distance(x, y), expected)
    close(frechet_distance(y, x), expected)


@pytest.mark.system("fid", "symmetric-root")
def test_closed_forms() -> None:
    x = normal(50, 4)
    assert abs(frechet_distance(x, x)) < 1e-9
    close(frechet_distance(x, x + 3), 36.0)  # a shift of 3 in 4 dimensions
    variance = x.var(0).sum()
    centred = x - x.mean(0)
    close(frechet_distance(centred, 2 * centred), float(variance))  # (σ − 2σ)² in each direction
    one = normal(50, 1)
    close(frechet_distance(one - one.mean(), 3 * (one - one.mean())), 4 * float(one.var()))
    with pytest.raises(ValueError, match="at least two rows"):
        frechet_distance(x[:1], x)


@pytest.mark.system("inception-v3", "substitute")
@pytest.mark.system("fid", "any-extractor")
def test_it_does_not_know_which_network_it_is() -> None:
    """Inception-v3's features, a tiny network's, the pixels': the same function, its own figures for each."""
    images = TINY_INPUT()
    inception, small = InceptionV3(TINY).eval(), torch.nn.Conv2d(images.shape[1], 3, 5, 5)
    networks = (inception.features, lambda x: small(x).mean((2, 3)), lambda x: x.flatten(1)[:, :6])
    for features in networks:
        assert abs(distance_of_images(features, images, images, batch=3)) < 1e-6
        assert distance_of_images(features, images, images + 2, batch=3) > 1e-6
    pixels = networks[2]
    close(distance_of_images(pixels, images, images + 2), frechet_distance(pixels(images), pixels(images + 2)))


@pytest.mark.system("fid", "bias")
@pytest.mark.parametrize("seed", range(3))
def test_few_examples_bias_it_upwards(seed: int) -> None:
    """Two samples of N(0, I) in 16 dimensions: above 0, and the less the more there are, about as 1/n."""
    found = []
    for n in (50, 200, 800, 3200):
        x, y = (normal(n, 16, seed=10 * seed + k) for k in (1, 2))
        found.append(fid(x, y))
    assert found == sorted(found, reverse=True)
    assert found[-1] > 0
    for more, less in pairwise(found):
        assert 2.5 < more / less < 6.5


@pytest.mark.system("fid", "few-refused")
def test_no_more_examples_than_features_are_refused() -> None:
    with pytest.raises(Mistake, match="of 16 features needs more than 16 images of each kind, not 16"):
        fid(normal(16, 16), normal(40, 16))
    assert fid(normal(17, 16), normal(17, 16, seed=1)) > 0
