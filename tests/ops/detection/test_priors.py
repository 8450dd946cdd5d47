from __future__ import annotations

import pytest
import torch
from sklearn.cluster import KMeans

from descend.errors import Mistake
from descend.ops.boxes import pairwise_iou, to_corners
from descend.ops.detection.priors import fit_priors, mean_best_iou, size_iou
from tests.close import close


def mixed_sizes(n: int = 400, seed: int = 0) -> torch.Tensor:
    """Many small boxes, few large ones, as in real sets."""
    random = torch.Generator().manual_seed(seed)
    return torch.exp(torch.randn(n, 2, generator=random) * 0.9 + 3)


def test_the_distance_is_iou_of_centred_boxes() -> None:
    a, b = mixed_sizes(20).double(), mixed_sizes(7, 1).double()
    centred = [to_corners(torch.cat([torch.zeros_like(x), x], dim=1)) for x in (a, b)]
    close(size_iou(a, b), pairwise_iou(*centred))


@pytest.mark.system("kmeans-anchor-priors")
@pytest.mark.system("kmeans-anchor-priors", "planted")
def test_planted_clusters_are_recovered() -> None:
    planted = torch.tensor([[10.0, 13.0], [16.0, 30.0], [33.0, 23.0], [62.0, 45.0], [116.0, 90.0]])
    random = torch.Generator().manual_seed(0)
    sizes = (planted[:, None] * (1 + 0.03 * torch.randn(5, 60, 2, generator=random))).reshape(-1, 2)
    found = fit_priors(sizes, 5)
    assert float((found.sizes / planted - 1).abs().max()) < 0.02
    assert found.ious[-1] > 0.94


@pytest.mark.system("kmeans-anchor-priors")
@pytest.mark.system("kmeans-anchor-priors", "never-falls")
@pytest.mark.parametrize("k", [1, 3, 5, 9])
def test_the_mean_iou_never_falls(k: int) -> None:
    sizes = mixed_sizes()
    found = fit_priors(sizes, k, seed=1)
    assert all(b >= a for a, b in zip(found.ious, found.ious[1:], strict=False))
    assert found.ious[-1] == pytest.approx(mean_best_iou(sizes.double(), found.sizes), abs=1e-6)
    assert (found.sizes.prod(dim=1).diff() >= 0).all()
    assert found.sizes.shape == (k, 2)


@pytest.mark.system("kmeans-anchor-priors", "distance")
def test_better_than_euclidean_clusters() -> None:
    """scikit-learn's K-means on the same sizes lets the large boxes decide: a lower mean IoU, on every set."""
    for seed in range(3):
        sizes = mixed_sizes(seed=seed)
        theirs = KMeans(5, n_init=3, random_state=0).fit(sizes.numpy()).cluster_centers_
        ours = max(mean_best_iou(sizes, fit_priors(sizes, 5, s).sizes) for s in range(3))
        assert ours > mean_best_iou(sizes, torch.tensor(theirs, dtype=torch.float32)) + 0.01


@pytest.mark.system("kmeans-anchor-priors", "more-fit-better")
def test_more_priors_fit_better() -> None:
    sizes = mixed_sizes()
    ious = [fit_priors(sizes, k).ious[-1] for k in (1, 3, 5, 9)]
    assert ious == sorted(ious)
    assert ious[-1] - ious[0] > 0.2


def test_what_is_refused() -> None:
    with pytest.raises(Mistake, match="2 different sizes"):
        fit_priors(torch.tensor([[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]]), 3)
    for bad in (torch.zeros(3, 2), torch.ones(3), torch.tensor([[1.0, torch.nan]])):
        with pytest.raises(Mistake, match="positive"):
            fit_priors(bad, 1)
    assert fit_priors(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 2).sizes.tolist() == [[1, 2], [3, 4]]
