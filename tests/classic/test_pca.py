"""PCA in three forms against scikit-learn, and what each promises."""

from __future__ import annotations

import math

import pytest
import sklearn.decomposition as theirs
import torch
from scipy.optimize import minimize
from sklearn.datasets import make_circles
from torch import Tensor

from descend.classic.pca import (
    PCA,
    KernelPCA,
    LogisticPCA,
    gaussian_kernel,
    linear_kernel,
    polynomial_kernel,
    working_response,
)
from descend.data.images.digits import load_digits_split
from descend.errors import Mistake
from descend.losses.variational import bernoulli_nll
from descend.metrics.probe import probe_accuracy
from tests.close import close


def rows(n: int = 60, d: int = 6, seed: int = 0) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, dtype=torch.float64, generator=random)
    return x @ torch.randn(d, d, dtype=torch.float64, generator=random) + 1


def up_to_signs(ours: Tensor, theirs: Tensor) -> Tensor:
    return ours * (ours * theirs).sum(0).sign()


@pytest.mark.system("pca")
@pytest.mark.system("pca", "scikit-learn")
def test_pca_as_scikit_learn() -> None:
    x, new = rows(), rows(7, seed=1)
    ours, oracle = PCA.fit(x, 3), theirs.PCA(3, svd_solver="full").fit(x.numpy())
    close(up_to_signs(ours.components, torch.from_numpy(oracle.components_.T)), torch.from_numpy(oracle.components_.T))
    close(ours.eigenvalues[:3] * 60 / 59, torch.from_numpy(oracle.explained_variance_))  # 1/n here, 1/(n − 1) there
    scores = torch.from_numpy(oracle.transform(new.numpy()))
    close(up_to_signs(ours.transform(new), scores), scores)
    close(ours.inverse(ours.transform(new)), torch.from_numpy(oracle.inverse_transform(scores.numpy())))


@pytest.mark.system("pca", "residual", "round-trip")
def test_what_is_lost_is_the_sum_of_the_dropped_eigenvalues() -> None:
    x = rows()
    for keep in (1, 3, 5):
        pca = PCA.fit(x, keep)
        close((x - pca.inverse(pca.transform(x))).square().sum(1).mean(), pca.residual)
        close(pca.components.T @ pca.components, torch.eye(keep, dtype=torch.float64), loosen=10)
    whole = PCA.fit(x, 6)
    close(whole.inverse(whole.transform(x)), x)
    close(whole.transform(x).square().mean(0), whole.eigenvalues)


@pytest.mark.system("pca", "bad-input")
def test_bad_input_is_refused() -> None:
    with pytest.raises(Mistake, match="7 components: these rows have 1 to 6"):
        PCA.fit(rows(), 7)
    with pytest.raises(Mistake, match="finite"):
        PCA.fit(torch.full((3, 3), torch.nan), 1)
    with pytest.raises(Mistake, match="at least 2 rows"):
        PCA.fit(rows(1), 1)


@pytest.mark.system("kernel-pca")
@pytest.mark.system("kernel-pca", "scikit-learn")
@pytest.mark.parametrize(
    ("kernel", "settings"),
    [
        (polynomial_kernel(3, 1.0), {"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 1.0}),
        (gaussian_kernel(0.2), {"kernel": "rbf", "gamma": 0.2}),
    ],
)
def test_kernel_pca_as_scikit_learn(kernel: object, settings: dict[str, object]) -> None:
    x, new = rows(), rows(7, seed=1)
    ours, oracle = KernelPCA.fit(x, 3, kernel), theirs.KernelPCA(3, eigen_solver="dense", **settings).fit(x.numpy())  # type: ignore[arg-type]
    for given in (x, new):
        scores = torch.from_numpy(oracle.transform(given.numpy()))
        close(up_to_signs(ours.transform(given), scores), scores, loosen=100)  # eigenvalues over six decades
    close(ours.eigenvalues, torch.from_numpy(oracle.eigenvalues_), loosen=10)


@pytest.mark.system("kernel-pca", "linear")
def test_a_linear_kernel_is_pca() -> None:
    x, new = rows(), rows(7, seed=1)
    scores = PCA.fit(x, 3).transform(new)
    close(up_to_signs(KernelPCA.fit(x, 3, linear_kernel).transform(new), scores), scores, loosen=100)
    with pytest.raises(Mistake, match="fewer directions"):
        KernelPCA.fit(x, 8, linear_kernel)


@pytest.mark.system("kernel-pca", "circles")
@pytest.mark.parametrize("seed", range(3))
def test_a_gaussian_kernel_separates_circles(seed: int) -> None:
    x, y = make_circles(300, factor=0.3, noise=0.05, random_state=seed)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    assert probe_accuracy(x, y) < 0.75
    assert probe_accuracy(KernelPCA.fit(x, 2, gaussian_kernel(2.0)).transform(x), y) > 0.97


@pytest.fixture(scope="module")
def digits() -> tuple[Tensor, Tensor]:
    split = load_digits_split()
    return (split.train.x.flatten(1)[:400] > 0.5).double(), (split.valid.x.flatten(1)[:100] > 0.5).double()


@pytest.fixture(scope="module")
def logistic(digits: tuple[Tensor, Tensor]) -> LogisticPCA:
    return LogisticPCA.fit(digits[0], 8, steps=60)


@pytest.mark.system("logistic-pca")
@pytest.mark.system("logistic-pca", "range", "cross-entropy")
def test_logistic_pca_beats_clipped_pca(digits: tuple[Tensor, Tensor], logistic: LogisticPCA) -> None:
    """By cross-entropy, on the fitted rows and on held-out ones; reconstructions are inside 0..1."""
    pca = PCA.fit(digits[0], 8)
    for x in digits:
        y = logistic.inverse(logistic.transform(x, steps=60))
        assert 0 < y.min() < y.max() < 1
        clipped = pca.inverse(pca.transform(x)).clamp(1e-3, 1 - 1e-3)
        assert bernoulli_nll(x, y.logit()).mean() < 0.8 * bernoulli_nll(x, clipped.logit()).mean()


@pytest.mark.system("logistic-pca", "descends")
def test_the_fit_goes_down(digits: tuple[Tensor, Tensor], logistic: LogisticPCA) -> None:
    x = digits[0][:150]
    losses = [LogisticPCA.fit(x, 3, steps=n).cross_entropy(x).mean() for n in (1, 3, 10, 30)]
    assert losses[0] > losses[1] > losses[2] > losses[3]
    close(logistic.loadings.T @ logistic.loadings, torch.eye(8, dtype=torch.float64), loosen=10)
    theta = torch.linspace(-4, 4, 41, dtype=torch.float64)  # the quadratic lies above the cross-entropy
    at = torch.tensor(0.7, dtype=torch.float64)
    for value in (0.0, 1.0):
        true = bernoulli_nll(torch.full((41, 1), value).double(), theta[:, None])
        here = bernoulli_nll(torch.tensor([[value]]).double(), at[None, None])
        centre = working_response(torch.tensor(value).double(), at)
        bound = here + ((theta - centre) ** 2 - (at - centre) ** 2) / 8
        assert (bound >= true - 1e-12).all()


@pytest.mark.system("logistic-pca")
@pytest.mark.system("logistic-pca", "optimum")
def test_codes_are_the_best_ones(digits: tuple[Tensor, Tensor], logistic: LogisticPCA) -> None:
    """As scipy's optimizer finds for one row: −log p and the same small penalty."""
    x = digits[1][:1]
    ours = logistic.transform(x, steps=3000)[0]

    def loss(z: object) -> float:
        code = torch.as_tensor(z, dtype=torch.float64)[None]
        return float(bernoulli_nll(x, logistic.logits(code)) + 1e-3 / 8 * code.square().sum())

    best = minimize(loss, ours.numpy() * 0.9, tol=1e-12)
    assert loss(ours) <= best.fun + 1e-5
    assert math.isclose(loss(ours), best.fun, rel_tol=1e-5)
