"""Neighbours and probes against scikit-learn; spread and rank of vectors that have collapsed and that have not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.metrics.neighbours import (
    classify_by_neighbours,
    effective_rank,
    find_nearest,
    fitted_probe_accuracy,
    neighbour_accuracy,
    spread,
)


def clusters(n: int, seed: int) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    y = torch.randint(3, (n,), generator=random)
    return torch.eye(3, 8)[y] * 3 + torch.randn(n, 8, generator=random), y


@pytest.mark.system("siamese-contrastive", "linear-probe")
def test_a_probe_and_neighbours_are_those_of_scikit_learn() -> None:
    from sklearn.linear_model import Ridge
    from sklearn.neighbors import NearestNeighbors

    (x, y), (known, labels) = clusters(80, 0), clusters(120, 1)
    near = NearestNeighbors(n_neighbors=5, metric="cosine").fit(known.numpy()).kneighbors(x.numpy())[1]
    assert torch.equal(find_nearest(x, known, 5), torch.from_numpy(near))
    votes = torch.stack([torch.bincount(labels[row], minlength=3) for row in torch.from_numpy(near)])
    flat = classify_by_neighbours(x, known, labels, k=5, tau=1e6)  # equal weights
    clear = votes.sort(dim=1).values[:, -1] > votes.sort(dim=1).values[:, -2]
    assert torch.equal(flat[clear], votes.argmax(1)[clear])
    mean, std = known.double().mean(0), known.double().std(0)
    # theirs leaves the constant out of the penalty; the columns are centred, so ours nearly does
    theirs = Ridge(alpha=1e-3 * 120).fit(((known - mean) / std).numpy(), torch.eye(3)[labels].numpy())
    said = torch.from_numpy(theirs.predict(((x - mean) / std).numpy())).argmax(1)
    assert fitted_probe_accuracy(x, y, known, labels) == pytest.approx(float((said == y).double().mean()), abs=0.026)
    assert neighbour_accuracy(x, y, known, labels) > 0.85


@pytest.mark.system("simsiam")
@pytest.mark.system("simsiam", "healthy-std")
def test_the_spread_of_random_directions_is_1_and_of_a_point_0() -> None:
    x = torch.randn(4000, 32, generator=torch.Generator().manual_seed(0))
    assert spread(x) == pytest.approx(1, abs=0.01)
    assert spread(torch.ones(50, 32) + 0) == pytest.approx(0, abs=1e-9)
    assert effective_rank(x) == pytest.approx(32, rel=0.01)
    assert effective_rank(torch.ones(50, 8)) == 1
    line = torch.randn(100, 1) * torch.randn(1, 8)
    assert effective_rank(line) == pytest.approx(1, abs=1e-5)
