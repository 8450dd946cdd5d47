"""Random features of the softmax kernel: means, variances, orthogonal rows, and the errata of the book."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from descend.ops.attention.random_features import (
    independent_rows,
    orthogonal_rows,
    positive_features,
    positive_variance,
    scale_by_root,
    softmax_kernel,
    trigonometric_features,
    trigonometric_variance,
)
from tests.close import close

SLUG = "performer"
FEATURES = {"positive": positive_features, "trigonometric": trigonometric_features}
VARIANCES = {"positive": positive_variance, "trigonometric": trigonometric_variance}


def rows(kind: object, m: int, d: int, seed: int = 0) -> Tensor:
    return kind(m, d, torch.Generator().manual_seed(seed), torch.float64)  # type: ignore[operator]


def pair(d: int = 4) -> tuple[Tensor, Tensor]:
    q, k = 0.5 * torch.randn(2, d, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    return q, k


def single(kind: str, q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    """One estimate for each row of w."""
    return torch.stack([FEATURES[kind](q, one) @ FEATURES[kind](k, one) for one in w[:, None]])


@pytest.mark.system(SLUG, "unbiased")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("kind", FEATURES)
def test_mean_and_variance_by_quadrature(kind: str) -> None:
    """In one dimension the mean over w ~ N(0, 1) is an integral: exact to rounding with 40 Gauss-Hermite points."""
    from numpy.polynomial.hermite_e import hermegauss

    nodes, weights = (torch.tensor(x) for x in hermegauss(40))
    weights = weights / math.sqrt(2 * math.pi)
    q, k = torch.tensor([0.7], dtype=torch.float64), torch.tensor([-0.4], dtype=torch.float64)
    found = single(kind, q, k, nodes[:, None])
    mean = (weights * found).sum()
    close(mean, softmax_kernel(q[None], k[None])[0, 0])  # exp(q·k): not exp(q·k/√d), the erratum of S940 6.2
    close((weights * found.square()).sum() - mean**2, VARIANCES[kind](q, k))


@pytest.mark.system(SLUG, "scaling")
@pytest.mark.system(SLUG)
def test_scaled_inputs_give_the_kernel_of_attention() -> None:
    q, k = pair()
    close(softmax_kernel(scale_by_root(q)[None], scale_by_root(k)[None])[0, 0], (q @ k / math.sqrt(4)).exp())
    assert (softmax_kernel(q[None], k[None])[0, 0] - (q @ k / 2).exp()).abs() > 0.01


@pytest.mark.system(SLUG, "error")
@pytest.mark.system(SLUG)
def test_error_falls_as_one_over_root_m() -> None:
    q, k = pair()
    exact = softmax_kernel(q[None], k[None])
    errors = []
    for m in (16, 256):
        w = rows(independent_rows, 400 * m, 4).view(400, m, 4)
        found = torch.stack([positive_features(q, one) @ positive_features(k, one) for one in w])
        errors.append(float((found - exact).square().mean()))
        assert abs(float(found.mean() - exact)) < 4 * math.sqrt(errors[-1] / 400)  # unbiased
    assert 0.7 < errors[0] / errors[1] / 16 < 1.4  # mean squares: 16 times the features, 1/16 of the error
    assert 0.7 < errors[0] * 16 / float(positive_variance(q, k)) < 1.4


@pytest.mark.system(SLUG, "regimes")
@pytest.mark.system(SLUG)
def test_positive_features_win_only_where_the_kernel_is_small() -> None:
    """S940-6.2-positive-vs-trig-variance: the printed claim depends on the regime; positivity does not."""
    q = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    assert positive_variance(q, -q) == 0
    assert trigonometric_variance(q, q) == 0
    assert trigonometric_variance(q, -q) > 3
    assert positive_variance(q, q) > 300
    w, (a, b) = rows(independent_rows, 200, 4), (2 * x for x in pair())
    assert (positive_features(a, w) > 0).all()
    assert (single("trigonometric", a, b, w) < 0).any()


@pytest.mark.system(SLUG, "orthogonal")
@pytest.mark.system(SLUG)
def test_orthogonal_rows() -> None:
    w = rows(orthogonal_rows, 10, 4)
    assert w.shape == (10, 4)
    for block in w.split(4):
        gram = block @ block.T
        close(gram, torch.diag(gram.diagonal()))
    many = rows(orthogonal_rows, 4000, 4)
    assert abs(float(many.square().sum(-1).mean()) - 4) < 0.2  # norms of normal vectors: chi with d degrees
    assert abs(float(many.square().sum(-1).var()) - 8) < 1.2
    assert (many.T @ many / 4000 - torch.eye(4)).abs().max() < 0.1
    assert torch.equal(w, rows(orthogonal_rows, 10, 4))


@pytest.mark.system(SLUG, "orthogonal")
@pytest.mark.system(SLUG)
def test_orthogonal_rows_have_less_error() -> None:
    d = 8
    q, k = (torch.randn(2, d, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 0.5).unbind()
    exact, errors = (q @ k).exp(), []
    for kind in (independent_rows, orthogonal_rows):
        w = [rows(kind, d, d, seed) for seed in range(1500)]
        found = torch.stack([positive_features(q, one) @ positive_features(k, one) for one in w])
        errors.append(float((found - exact).square().mean()))
        assert abs(float(found.mean() - exact)) < 4 * math.sqrt(errors[-1] / 1500)
    assert errors[1] < 0.9 * errors[0]
