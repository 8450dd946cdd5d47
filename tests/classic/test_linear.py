"""Linear and logistic regression against scikit-learn, gradient descent against the closed form."""

from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression
from torch import Tensor

from descend.classic.linear import (
    Linear,
    gradient_descent,
    largest_rate,
    least_squares,
    logistic_gradient,
    logistic_regression,
)
from descend.errors import Mistake
from descend.losses.classification import binary_cross_entropy
from descend.tracing.page import make_body
from descend.tracing.result import make_trace
from tests.close import close


def data(n: int = 50, d: int = 3) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(1)
    x = torch.randn(n, d, generator=random, dtype=torch.float64) + 0.5
    y = x @ torch.arange(1.0, d + 1, dtype=torch.float64) - 2 + torch.randn(n, generator=random, dtype=torch.float64)
    return x, y


@pytest.mark.system("linear-model")
@pytest.mark.system("linear-model", "closed-form", "exposed")
def test_closed_form_is_the_normal_equations_and_scikit_learn() -> None:
    x, y = data()
    ours, theirs = least_squares(x, y), LinearRegression().fit(x, y)
    close(ours.w, torch.tensor(theirs.coef_))
    close(ours.b, torch.tensor(theirs.intercept_))
    rows = torch.cat([x, torch.ones(50, 1, dtype=torch.float64)], 1)
    close(torch.cat([ours.w, ours.b[None]]), torch.linalg.solve(rows.T @ rows, rows.T @ y))
    assert ours.w.numel() + ours.b.numel() == 4
    close(ours(2 * x[:1] - x[1:2]), 2 * ours(x[:1]) - ours(x[1:2]))  # affine: weights that sum to 1 pass through


@pytest.mark.system("linear-model")
@pytest.mark.system("linear-model", "gradient-descent")
def test_gradient_descent_reaches_the_closed_form() -> None:
    x, y = data()
    found, best = gradient_descent(x, y, steps=2000), least_squares(x, y)
    close(found.w, best.w)
    close(found.b, best.b)
    with pytest.raises(Mistake, match="diverged"):
        gradient_descent(x, y, rate=3 * largest_rate(x), steps=2000)
    one = gradient_descent(x, y, rate=1e-3, steps=1)  # DLN's cost has no ½ and no mean
    theta = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    (x @ theta[:3] + theta[3] - y).square().sum().backward()
    close(one.w, -1e-3 * theta.grad[:3])  # type: ignore[index]


@pytest.mark.system("linear-model")
@pytest.mark.system("linear-model", "classifier")
def test_sign_classifier_separates_what_a_line_can_and_not_xor() -> None:
    x = data()[0]
    signs = torch.where(x[:, 0] > 0.5, 1, -1)
    clear = x + 2 * signs[:, None] * torch.tensor([1.0, 0, 0], dtype=torch.float64)
    model = least_squares(clear, signs.double())
    assert (model.sign(clear) == signs).all()
    corners = torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]], dtype=torch.float64)
    labels = torch.tensor([-1.0, 1, 1, -1], dtype=torch.float64)
    assert (least_squares(corners, labels).sign(corners) == labels).sum() < 4


@pytest.mark.system("logistic-regression")
@pytest.mark.system("logistic-regression", "trained")
@pytest.mark.parametrize("ridge", [0.5, 2.0])
def test_logistic_regression_is_scikit_learn(ridge: float) -> None:
    x, y = data()
    bits = (y > y.mean()).double()
    ours = logistic_regression(x, bits, ridge)
    theirs = LogisticRegression(C=1 / ridge, tol=1e-12, max_iter=10_000).fit(x, bits)
    close(ours.w, torch.tensor(theirs.coef_[0]), loosen=1e4)  # their solver stops at a smaller accuracy
    close(ours.b, torch.tensor(theirs.intercept_[0]), loosen=1e4)
    close(ours.probability(x), torch.tensor(theirs.predict_proba(x)[:, 1]), loosen=1e4)


@pytest.mark.system("logistic-regression")
@pytest.mark.system("logistic-regression", "gradient")
def test_gradient_is_prediction_minus_label_times_input() -> None:
    x, y = data()
    bits = (y > y.mean()).double()
    w, b = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64, requires_grad=True), torch.tensor(0.4).double()
    b.requires_grad_()
    loss = binary_cross_entropy(x @ w + b, bits).sum()
    by_w, by_b = torch.autograd.grad(loss, (w, b))
    close(logistic_gradient(x, bits, Linear(w.detach(), b.detach())), torch.cat([by_w, by_b[None]]))
    found = logistic_regression(x, bits)
    assert logistic_gradient(x, bits, found).norm() < 1e-6


@pytest.mark.system("logistic-regression")
def test_separated_classes_and_wrong_labels_are_named() -> None:
    x = data()[0]
    with pytest.raises(Mistake, match="give ridge > 0"):
        logistic_regression(x, (x[:, 0] > 0.5).double())
    with pytest.raises(Mistake, match="both classes"):
        logistic_regression(x, torch.ones(50))


@pytest.mark.system("logistic-regression", "drawn")
def test_its_computational_graph_is_drawn_with_the_gradient_on_it() -> None:
    x, y = data(6)
    bits = (y > y.mean()).double()
    w, b = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64), torch.tensor(0.4, dtype=torch.float64)

    def loss(w: Tensor, b: Tensor) -> Tensor:
        z = x @ w + b
        p = z.sigmoid()
        return -(bits * p.log() + (1 - bits) * (1 - p).log()).sum()

    found = make_trace(loss, [w, b])
    by_w = found.adjoint("w")
    assert by_w is not None
    close(by_w, logistic_gradient(x, bits, Linear(w, b))[:3])
    page = make_body(found)
    assert "<svg" in page
    assert all(f">{name}<" in page for name in ("w", "b", "z", "p"))
