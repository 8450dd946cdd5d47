"""Generative classifiers against scikit-learn's, and as logistic regressions."""

from __future__ import annotations

import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from torch import Tensor

from descend.classic.generative_classifier import (
    GaussianClassifier,
    fit_diagonal,
    fit_own,
    fit_shared,
    to_logistic,
)
from descend.classic.linear import logistic_regression
from descend.errors import Mistake
from descend.ops.math.probability import bayes, given_columns, given_rows
from descend.seeds import generator
from tests.close import close

pytestmark = pytest.mark.system("generative-versus-discriminative")
DOUBLE = torch.float64


def data(n: int = 300, classes: int = 3) -> tuple[Tensor, Tensor]:
    random = generator(0)
    y = torch.randint(classes, (n,), generator=random)
    means = torch.randn(classes, 2, generator=random, dtype=DOUBLE) * 2
    mix = torch.randn(classes, 2, 2, generator=random, dtype=DOUBLE)
    return means[y] + (mix[y] @ torch.randn(n, 2, 1, generator=random, dtype=DOUBLE))[..., 0], y


@pytest.mark.system("generative-versus-discriminative", "both-ways")
def test_both_conditionals_come_from_one_joint() -> None:
    """P(label | object) by Bayes from P(object | label) and P(label), and back. DLD: x = label (rows), y = object."""
    joint = torch.tensor([[0.1, 0.2, 0.1], [0.3, 0.1, 0.2]], dtype=DOUBLE)
    close(bayes(joint.sum(1), given_rows(joint)), given_columns(joint))
    close(bayes(joint.sum(0), given_columns(joint).T), given_rows(joint).T)


@pytest.mark.system("generative-versus-discriminative", "classifiers")
@pytest.mark.parametrize(
    ("fit", "theirs"),
    [
        (fit_own, QuadraticDiscriminantAnalysis()),
        (fit_shared, LinearDiscriminantAnalysis(solver="lsqr")),
        (fit_diagonal, GaussianNB(var_smoothing=0.0)),
    ],
)
def test_as_scikit_learn(fit: object, theirs: object) -> None:
    x, y = data()
    ours = fit(x, y, 3)  # type: ignore[operator]
    theirs.fit(x.numpy(), y.numpy())  # type: ignore[attr-defined]
    close(ours.probability(x), torch.from_numpy(theirs.predict_proba(x.numpy())))  # type: ignore[attr-defined]


@pytest.mark.system("generative-versus-discriminative", "interchangeable")
def test_one_covariance_is_a_logistic_regression() -> None:
    x, y = data()
    shared = fit_shared(x, y, 3)
    w, c = to_logistic(shared)
    close((x @ w.T + c).softmax(1), shared.probability(x))
    with pytest.raises(ValueError, match="curved"):
        to_logistic(fit_own(x, y, 3))


@pytest.mark.system("generative-versus-discriminative", "interchangeable")
def test_the_discriminative_fit_tends_to_the_same_weights() -> None:
    """Data of the generative model itself, two classes, many examples."""
    root = torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=DOUBLE)
    true = GaussianClassifier(
        torch.tensor([0.4, 0.6], dtype=DOUBLE),
        torch.tensor([[-0.5, 0.0], [0.7, 0.5]], dtype=DOUBLE),
        (root @ root.T).expand(2, 2, 2),
    )
    y = (torch.rand(40_000, generator=generator(1)) < 0.6).long()
    x = true.sample(y, generator(2))
    w, c = to_logistic(true)
    found = logistic_regression(x, y.double())
    assert (found.w - (w[1] - w[0])).abs().max() < 0.06
    assert abs(found.b - (c[1] - c[0])) < 0.06


@pytest.mark.system("generative-versus-discriminative", "sampled")
def test_new_objects_of_a_class() -> None:
    x, y = data()
    found = fit_own(x, y, 3)
    made = found.sample(torch.full((50_000,), 1), generator(3))
    assert (made.mean(0) - found.mean[1]).abs().max() < 0.05
    assert (torch.cov(made.T) - found.covariance[1]).abs().max() < 0.05 * float(found.covariance[1].max()) + 0.02
    assert found.log_prob(made[:100]).mean() > found.log_prob(made[:100] + 20).max()
    line = torch.linspace(-20, 20, 401, dtype=DOUBLE)[:-1] + 0.05
    assert abs(float(found.log_prob(torch.cartesian_prod(line, line)).exp().sum()) * 0.01 - 1) < 1e-3


def test_a_class_with_one_example_is_a_mistake() -> None:
    with pytest.raises(Mistake, match="class 1 has 1 examples"):
        fit_own(torch.zeros(3, 2), torch.tensor([0, 0, 1]), 2)
