"""Ridge, lasso, elastic net, and the constrained form: scikit-learn, the conditions at the minimum, the errata."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn import linear_model
from torch import Tensor
from torch.nn import functional as F

from descend.classic.constrained import project_ball, project_diamond, projected_gradient
from descend.classic.elastic_net import elastic_net, gradient, kkt_residual
from descend.classic.lasso import ista, largest_lambda, lasso, lasso_of_half_mean_square, lasso_of_mean_square
from descend.classic.ridge import ridge, ridge_by_svd, ridge_of_half_mean_square, ridge_of_mean_square, shrinkage
from descend.errors import Mistake
from descend.optim.proximal import soft_threshold
from tests.close import close


def problem(n: int = 30, d: int = 8, seed: int = 0) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, dtype=torch.float64, generator=random)
    w = torch.randn(d, dtype=torch.float64, generator=random) * (torch.arange(d) % 2)
    return x, x @ w + torch.randn(n, dtype=torch.float64, generator=random)


X, Y = problem()
TOP = float(torch.linalg.eigvalsh(X.T @ X)[-1])  # the largest curvature of ½‖Xw − y‖²


def half_sum(w: Tensor) -> Tensor:
    return (X @ w - Y).square().sum() / 2


@pytest.mark.system("ridge-regression")
@pytest.mark.system("ridge-regression", "forms")
@pytest.mark.parametrize("lam", [1e-3, 0.5, 40.0])
def test_ridge_is_scikit_learns(lam: float) -> None:
    close(ridge(X, Y, lam), linear_model.Ridge(alpha=lam, fit_intercept=False).fit(X, Y).coef_)
    close(ridge_by_svd(X, Y, lam), ridge(X, Y, lam))
    with_bias = linear_model.Ridge(alpha=lam).fit(X, Y)
    centred = ridge(X - X.mean(0), Y - Y.mean(), lam)
    close(centred, with_bias.coef_)
    close(Y.mean() - X.mean(0) @ centred, with_bias.intercept_)


@pytest.mark.system("ridge-regression")
@pytest.mark.system("ridge-regression", "erratum")
def test_each_closed_form_is_the_minimum_of_its_objective() -> None:
    """Erratum DLD 9.2: with (1/n) the λ of the formula is nλ/2, or nλ for the half squares."""
    lam, half = 0.7, lambda w: 0.35 * w.square().sum()
    objectives = {
        ridge: lambda w: half_sum(w) + half(w),
        ridge_of_mean_square: lambda w: (X @ w - Y).square().mean() + half(w),
        ridge_of_half_mean_square: lambda w: (X @ w - Y).square().mean() / 2 + half(w),
    }
    for solve, objective in objectives.items():
        w = solve(X, Y, lam).requires_grad_()
        assert torch.autograd.grad(objective(w), w)[0].abs().max() < 1e-12
    w = ridge(X, Y, lam).requires_grad_()
    printed = torch.autograd.grad(objectives[ridge_of_mean_square](w), w)[0]
    assert printed.abs().max() > 0.1  # the printed formula does not minimise the printed objective


@pytest.mark.system("ridge-regression")
@pytest.mark.system("ridge-regression", "forms")
@pytest.mark.system("l2-weight-decay")
def test_gradient_descent_with_weight_decay_gets_there() -> None:
    w = torch.zeros(8, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1 / (TOP + 2.0), weight_decay=2.0)
    for _ in range(300):
        optimizer.zero_grad()
        half_sum(w).backward()
        optimizer.step()
    close(w, ridge(X, Y, 2.0))


@pytest.mark.system("ridge-regression")
@pytest.mark.system("ridge-regression", "shrinkage")
def test_shrinkage_of_singular_directions() -> None:
    _, sigma, vt = torch.linalg.svd(X, full_matrices=False)
    ours, factors = shrinkage(X, 3.0)
    close(ours, sigma)
    close(vt @ ridge(X, Y, 3.0), factors * (vt @ ridge(X, Y, 0.0)))
    assert bool(((factors > 0) & (factors < 1)).all())
    assert bool((factors[:-1] > factors[1:]).all())  # the weakest direction shrinks most
    assert torch.equal(shrinkage(X, 0.0)[1], torch.ones(8, dtype=torch.float64))


@pytest.mark.system("ridge-regression")
@pytest.mark.system("ridge-regression", "collinear")
@pytest.mark.system("regularized-erm")
@pytest.mark.system("regularized-erm", "equal-columns")
def test_collinear_columns() -> None:
    """Least squares has no single answer; ridge does, shared equally by equal columns, and stable."""
    twice = torch.cat([X, X[:, :1]], 1)
    with pytest.raises(Mistake, match="lam > 0"):
        ridge(twice, Y, 0.0)
    w = ridge(twice, Y, 1e-3)
    close(w[0], w[8])
    close(w[0] + w[8], ridge(X, Y, 0.0)[0], loosen=1e6)  # λ is small: nearly least squares
    moved = ridge(twice, Y + 1e-3, 1e-3)
    assert (moved - w).abs().max() < 1e-2
    with pytest.raises(Mistake, match="negative"):
        ridge(X, Y, -1.0)


@pytest.mark.system("lasso")
@pytest.mark.system("lasso", "solvers", "conditions")
@pytest.mark.parametrize("lam", [0.5, 5.0, 20.0])
def test_lasso_three_ways(lam: float) -> None:
    """Coordinate descent, ISTA, and scikit-learn (whose alpha is λ/n); zeros are exact and the same."""
    w = lasso(X, Y, lam)
    theirs = linear_model.Lasso(alpha=lam / len(X), fit_intercept=False, tol=1e-14, max_iter=100_000).fit(X, Y).coef_
    close(w, theirs)
    assert torch.equal(w == 0, torch.tensor(theirs == 0))
    stepped = ista(half_sum, torch.zeros(8, dtype=torch.float64), lam, eta=1 / TOP)
    close(stepped, w)
    assert torch.equal(stepped == 0, w == 0)
    assert kkt_residual(w, gradient(X, Y, w, lam, 1.0), lam) < 1e-10
    assert kkt_residual(w + 0.01, gradient(X, Y, w + 0.01, lam, 1.0), lam) > 1e-2


@pytest.mark.system("lasso")
@pytest.mark.system("lasso", "erratum")
@pytest.mark.system("elastic-net")
def test_orthonormal_columns_are_thresholded() -> None:
    """Erratum DLD 9.3: S_λ(Xᵀy) is for the ½ sum; nλ/2 for the mean of squares, nλ for half of it."""
    q, n, lam = torch.linalg.qr(X).Q, len(X), 0.02
    close(lasso(q, Y, lam), soft_threshold(q.T @ Y, lam))
    close(lasso_of_mean_square(q, Y, lam), soft_threshold(q.T @ Y, n * lam / 2))
    close(lasso_of_half_mean_square(q, Y, lam), soft_threshold(q.T @ Y, n * lam))
    close(elastic_net(q, Y, lam, 0.3), soft_threshold(q.T @ Y, 0.3 * lam) / (1 + 0.7 * lam))
    w = lasso_of_half_mean_square(X, Y, 0.1)
    close(w, linear_model.Lasso(alpha=0.1, fit_intercept=False, tol=1e-14).fit(X, Y).coef_)


@pytest.mark.system("lasso")
@pytest.mark.system("lasso", "path")
def test_path() -> None:
    """All λ at once, as scikit-learn's one by one; everything is 0 from λ_max on, and not before."""
    top = float(largest_lambda(X, Y))
    lams = torch.tensor([1.01, 1.0, 0.99, 0.5, 0.1, 0.01], dtype=torch.float64) * top
    path = lasso(X, Y, lams)
    theirs = linear_model.lasso_path(X, Y, alphas=(lams / len(X)).numpy(), tol=1e-14, max_iter=100_000)[1].T
    close(path, theirs.copy())
    used = (path != 0).sum(1).tolist()
    assert used[:3] == [0, 0, 1]
    assert used == sorted(used)


@pytest.mark.system("lasso")
@pytest.mark.system("elastic-net")
def test_many_problems_at_once() -> None:
    problems = [problem(seed=seed) for seed in (1, 2, 3)]
    x, y = (torch.stack(parts) for parts in zip(*problems, strict=True))
    lams = torch.tensor([1.0, 10.0], dtype=torch.float64)
    together = elastic_net(x[:, None], y[:, None], lams, 0.7)
    assert together.shape == (3, 2, 8)
    for i, (a, b) in enumerate(problems):
        for j, lam in enumerate(lams.tolist()):
            close(together[i, j], elastic_net(a, b, lam, 0.7))


@pytest.mark.system("lasso")
@pytest.mark.system("lasso", "logistic")
def test_logistic_loss() -> None:
    """ISTA takes any smooth loss; scikit-learn's C is 1/λ."""
    y = (Y > 0).double()
    loss = lambda w: F.binary_cross_entropy_with_logits(X @ w, y, reduction="sum")
    w = ista(loss, torch.zeros(8, dtype=torch.float64), 2.0, eta=4 / TOP)
    theirs = linear_model.LogisticRegression(
        C=0.5, l1_ratio=1.0, solver="liblinear", fit_intercept=False, tol=1e-12, max_iter=10_000
    ).fit(X, y)
    close(w, theirs.coef_[0], loosen=1e3)  # the accuracy of liblinear
    g = torch.autograd.grad(loss(w.requires_grad_()), w)[0]
    assert kkt_residual(w.detach(), g, 2.0) < 1e-9
    assert 0 < int((w == 0).sum()) < 8


@pytest.mark.system("elastic-net")
@pytest.mark.system("elastic-net", "solver")
@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_elastic_net_is_scikit_learns(alpha: float) -> None:
    w = elastic_net(X, Y, 6.0, alpha)
    theirs = linear_model.ElasticNet(
        alpha=6.0 / len(X), l1_ratio=alpha, fit_intercept=False, tol=1e-14, max_iter=100_000
    ).fit(X, Y)
    close(w, theirs.coef_)
    assert kkt_residual(w, gradient(X, Y, w, 6.0, alpha), 6.0 * alpha) < 1e-10


@pytest.mark.system("elastic-net")
@pytest.mark.system("elastic-net", "ends")
def test_ends_of_the_elastic_net() -> None:
    close(elastic_net(X, Y, 6.0, 1.0), lasso(X, Y, 6.0))
    close(elastic_net(X, Y, 6.0, 0.0), ridge(X, Y, 6.0))


@pytest.mark.system("regularized-erm")
@pytest.mark.system("elastic-net")
def test_equal_columns() -> None:
    """Lasso cares only for the sum of the two weights: how it is shared is arbitrary. Elastic net shares equally."""
    twice = torch.cat([X, X[:, 1:2]], 1)
    any_share, shared = lasso(twice, Y, 5.0), elastic_net(twice, Y, 5.0, 0.5)
    one = any_share.clone()
    one[1], one[8] = one[1] + one[8], 0.0
    close(one[:8], lasso(X, Y, 5.0))
    for w in (any_share, one):
        assert kkt_residual(w, gradient(twice, Y, w, 5.0, 1.0), 5.0) < 1e-10
    close(shared[1], shared[8])
    assert shared[1] != 0


@pytest.mark.system("regularized-erm")
@pytest.mark.system("regularized-erm", "two-solvers")
@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=6), st.floats(0.01, 8))
def test_projections_are_nearest_points(values: list[float], t: float) -> None:
    w = torch.tensor(values, dtype=torch.float64)
    random = torch.Generator().manual_seed(0)
    for project, order in ((project_ball, 2), (project_diamond, 1)):
        p = project(w, t)
        size = torch.linalg.vector_norm(p, ord=order)
        assert size <= t * (1 + 1e-12)
        if torch.linalg.vector_norm(w, ord=order) <= t:
            close(p + 1, w + 1)
            continue
        assert abs(size - t) < 1e-9
        others = torch.randn(200, len(w), dtype=torch.float64, generator=random)
        others = t * others / torch.linalg.vector_norm(others, ord=order, dim=1, keepdim=True)
        # A projection onto a convex set: no point of the set lies on w's side of p.
        assert ((others - p) @ (w - p)).max() <= 1e-9


@pytest.mark.system("regularized-erm")
@pytest.mark.system("regularized-erm", "two-solvers")
@pytest.mark.parametrize("lam", [1.0, 5.0, 20.0])
def test_matched_penalised_and_constrained_solutions_are_one(lam: float) -> None:
    zero = torch.zeros(8, dtype=torch.float64)
    w = lasso(X, Y, lam)
    t = float(w.abs().sum())
    close(projected_gradient(half_sum, zero, lambda v: project_diamond(v, t), 1 / TOP), w, loosen=10)
    w = ridge(X, Y, lam)
    close(projected_gradient(half_sum, zero, lambda v: project_ball(v, float(w.norm())), 1 / TOP), w, loosen=10)
    bound = {"type": "ineq", "fun": lambda v: float(w.norm()) ** 2 - v @ v}
    found = minimize(lambda v: float(half_sum(torch.tensor(v))), zero.numpy(), constraints=[bound], tol=1e-12)
    close(torch.tensor(found.x), w, loosen=1e5)  # the accuracy of SLSQP with numerical gradients


@pytest.mark.system("regularized-erm")
@pytest.mark.system("regularized-erm", "erratum")
def test_lambda_and_t_are_one_to_one_only_where_the_constraint_is_active() -> None:
    """Erratum DLD 9.1."""
    top = float(largest_lambda(X, Y))
    sizes = lasso(X, Y, torch.tensor([0.0, 0.3, 0.6, 0.9, 1.0, 2.0], dtype=torch.float64) * top).abs().sum(1)
    assert bool((sizes[:4] > sizes[1:5]).all())  # strictly falling while active
    assert sizes[4:].tolist() == [0.0, 0.0]  # many λ, one t
    free = ridge(X, Y, 0.0)
    for t in (1.1, 2.0):  # many t, one solution, that of λ = 0
        wide = projected_gradient(half_sum, torch.zeros_like(free), lambda v: project_ball(v, t * free.norm()), 1 / TOP)
        close(wide, free, loosen=10)


def test_bad_values_are_refused() -> None:
    zero = torch.zeros(8, dtype=torch.float64)
    for alpha, lam in ((1.5, 1.0), (0.5, -1.0)):
        with pytest.raises(Mistake, match="alpha"):
            elastic_net(X, Y, lam, alpha)
    with pytest.raises(Mistake, match="no minimum after 1 sweeps"):
        elastic_net(X, Y, 0.1, 0.5, sweeps=1)
    with pytest.raises(Mistake, match="diverge"):
        ista(half_sum, zero, 0.1, eta=10.0)
    with pytest.raises(Mistake, match="diverge"):
        projected_gradient(half_sum, zero, lambda v: v, eta=10.0)
