"""Kernels and machines over them."""

from __future__ import annotations

import pytest
import torch
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from descend.classic.kernel import gaussian, perceptron, polynomial, polynomial_features, ridge
from descend.data.toys.plane import circles, xor
from descend.errors import Mistake
from descend.theory.perceptron import separable
from tests.close import close

X = torch.randn(12, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Z = torch.randn(5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.system("kernel-machine")
@pytest.mark.system("kernel-machine", "kernels")
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_polynomial_kernel_is_a_product_of_features(degree: int) -> None:
    close(polynomial(degree, 2.0)(X, Z), polynomial_features(X, degree, 2.0) @ polynomial_features(Z, degree, 2.0).T)
    close(polynomial(degree)(X, Z), torch.tensor(polynomial_kernel(X, Z, degree=degree, gamma=1.0, coef0=1.0)))


@pytest.mark.system("kernel-machine")
@pytest.mark.system("kernel-machine", "kernels", "gram")
def test_gram_matrices_are_positive_semidefinite() -> None:
    for kernel in (polynomial(2), polynomial(3), gaussian(0.7)):
        gram = kernel(X, X)
        close(gram, gram.T)
        assert torch.linalg.eigvalsh(gram).min() > -1e-9
    close(gaussian(0.7)(X, Z), torch.tensor(rbf_kernel(X, Z, gamma=1 / (2 * 0.7**2))))


@pytest.mark.system("kernel-machine")
@pytest.mark.system("kernel-machine", "machines")
def test_ridge_is_scikit_learn() -> None:
    y = X[:, 0].sin() + X[:, 1] ** 2
    ours = ridge(gaussian(1.0), X, y, penalty=0.1)
    theirs = KernelRidge(kernel="rbf", gamma=0.5, alpha=0.1).fit(X, y)
    close(ours.alpha, torch.tensor(theirs.dual_coef_))
    close(ours(Z), torch.tensor(theirs.predict(Z)))
    with pytest.raises(Mistake, match="above 0"):
        ridge(gaussian(1.0), X, y, penalty=0.0)


@pytest.mark.system("kernel-machine")
@pytest.mark.system("kernel-machine", "machines")
def test_kernels_separate_what_no_line_can() -> None:
    for cloud, noise in ((circles, 0.05), (xor, 0.1)):
        x, bits = cloud(60, noise, 0)
        x, y = x.double(), 2.0 * bits.double() - 1
        assert not separable(x, y)
        for kernel in (polynomial(2), gaussian(0.4)):
            machine, learned = perceptron(kernel, x, y)
            assert learned
            assert (machine(x).sign() == y).all()
        assert not perceptron(polynomial(1), x, y, epochs=20)[1]
        assert (ridge(gaussian(0.4), x, y, 1e-3)(x).sign() == y).all()
