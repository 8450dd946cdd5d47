"""Scaling: statistics of the training part only, both ways, and whitened covariance."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from torch import Tensor

from descend.data.tables.scaling import MinMax, Standardize, Whiten, covariance, error_surface
from descend.errors import Mistake
from tests.close import close


def rows(n: int = 40, seed: int = 0) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, generator=random, dtype=torch.float64)
    mix = torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.5, 0.1], [1.0, 0.0, 0.05]], dtype=torch.float64)
    return x @ mix + torch.tensor([1.8, 300_000.0, -4.0], dtype=torch.float64)


@pytest.mark.system("standardization")
@pytest.mark.system("standardization", "both-ways")
def test_standardization_is_scikit_learns_and_has_an_inverse() -> None:
    x, new = rows(), rows(seed=1)
    scale = Standardize.fit(x, "train")
    close(scale(new), torch.tensor(StandardScaler().fit(x).transform(new)))
    close(scale(x).square().mean(0), torch.ones(3, dtype=torch.float64))
    assert scale(x).mean(0).abs().max() < 1e-9
    close(scale.inverse(scale(new)), new)


@pytest.mark.system("standardization")
@pytest.mark.system("standardization", "leakage")
@pytest.mark.system("min-max-scaling")
@pytest.mark.system("pca-whitening")
@pytest.mark.parametrize("fit", [Standardize.fit, MinMax.fit, Whiten.fit])
@pytest.mark.parametrize("part", ["valid", "test"])
def test_refuses_to_fit_on_anything_but_the_training_part(fit: Callable[..., object], part: str) -> None:
    with pytest.raises(Mistake, match=f"fit on the {part} part: that leaks"):
        fit(rows(), part)
    with pytest.raises(Mistake, match="finite numbers"):
        fit(torch.tensor([[float("nan")]]), "train")


@pytest.mark.system("standardization")
@pytest.mark.system("standardization", "leakage")
def test_a_test_row_depends_on_training_rows_only() -> None:
    """Perturbing one test row leaves the others as they are; statistics over all rows would not."""
    x, test = rows(), rows(10, seed=1)
    scale = Standardize.fit(x, "train")
    moved = test.clone()
    moved[0] += 1e6
    assert torch.equal(scale(test)[1:], scale(moved)[1:])
    one, two = (Standardize.fit(torch.cat([x, t]), "train")(t)[1:] for t in (test, moved))
    assert not torch.allclose(one, two)


@pytest.mark.system("standardization")
@pytest.mark.system("standardization", "constant")
@pytest.mark.system("min-max-scaling")
@pytest.mark.system("min-max-scaling", "constant")
def test_constant_features_are_guarded() -> None:
    x = torch.tensor([[0.1, 1.0], [0.1, 3.0], [0.1, 2.0]])
    for scale in (Standardize.fit(x, "train"), MinMax.fit(x, "train")):
        assert scale(x).isfinite().all()
        assert scale(x)[:, 0].abs().max() < 1e-6
        close(scale.inverse(scale(x)), x)


@pytest.mark.system("standardization")
@pytest.mark.system("standardization", "faster")
def test_gradient_descent_is_faster_on_scaled_features() -> None:
    """The valley of a linear neuron is thousands of times longer before: its condition number."""
    x = rows()
    before, after = (torch.linalg.cond(error_surface(v)) for v in (x, Standardize.fit(x, "train")(x)))
    assert before > 1e6 * after


@pytest.mark.system("min-max-scaling")
@pytest.mark.system("min-max-scaling", "range")
def test_min_max_is_scikit_learns_for_any_range() -> None:
    x, new = rows(), rows(seed=1)
    for lo, hi in ((0.0, 1.0), (-1.0, 3.0)):
        scale = MinMax.fit(x, "train", lo, hi)
        close(scale(new), torch.tensor(MinMaxScaler((lo, hi)).fit(x).transform(new)), loosen=100)
        close(scale(x).amin(0) + 5, torch.full((3,), lo + 5, dtype=torch.float64))
        close(scale(x).amax(0), torch.full((3,), hi, dtype=torch.float64))
        close(scale.inverse(scale(new)), new)
    with pytest.raises(Mistake, match="lo < hi"):
        MinMax.fit(x, "train", 1.0, 1.0)


@pytest.mark.system("pca-whitening")
@pytest.mark.system("pca-whitening", "identity")
def test_whitened_covariance_is_the_identity() -> None:
    x = rows(500)
    white = Whiten.fit(x, "train")
    assert (covariance(white(x)) - torch.eye(3, dtype=torch.float64)).abs().max() < 1e-6  # σ/μ of a column is 1e-6
    close(white.inverse(white(x)), x)
    theirs = PCA(whiten=True).fit(x)
    ratio = (500 / 499) ** 0.5  # scikit-learn divides by n − 1
    close(white(x).abs(), torch.tensor(theirs.transform(x)).abs() * ratio, loosen=1e4)
    assert torch.linalg.cond(error_surface(white(x))) < 1.0001 < torch.linalg.cond(covariance(x))


@pytest.mark.system("pca-whitening")
@pytest.mark.system("pca-whitening", "dropped")
def test_the_smallest_directions_are_dropped() -> None:
    x = rows(500)
    two = Whiten.fit(x, "train", keep=2)
    close(two(x), Whiten.fit(x, "train")(x)[:, :2])
    assert (two.inverse(two(x)) - x).square().mean() < Whiten.fit(x, "train").variances[2]
    flat = torch.cat([x, x[:, :1] + x[:, 2:]], 1)  # a column that follows from others
    assert len(Whiten.fit(flat, "train").variances) == 3
    shares = Whiten.fit(x, "train").variances.cumsum(0) / Whiten.fit(x, "train").variances.sum()
    kept = Whiten.fit_share(x, "train", float(shares[1]) - 1e-6)
    assert len(kept.variances) == 2
    assert len(Whiten.fit_share(x, "train", 1.0).variances) == 3
    with pytest.raises(Mistake, match="vary in 3 directions"):
        Whiten.fit(flat, "train", keep=4)
