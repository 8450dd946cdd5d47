"""L1 against L2: the measured numbers, and verdicts on doctored ones."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch

from descend.classic.ridge import ridge
from descend.labs import l1_and_l2
from descend.labs._evidence import judge_seed
from descend.labs.l1_and_l2 import DESIGNS, FEATURES, LAMBDAS, METHODS, figure, fits, measure, truth
from tests.close import close

verdict = partial(judge_seed, l1_and_l2)

pytestmark = pytest.mark.system("regularized-erm")


@pytest.fixture(scope="module")
def numbers() -> dict[str, Any]:
    return measure(seed=0, budget=0.5)


@pytest.mark.system("regularized-erm", "designs")
def test_the_claim_is_supported(numbers: dict[str, Any]) -> None:
    assert verdict(numbers) == "supported"
    assert list(zip(numbers["design"], numbers["method"], strict=True)) == [(d, m) for d in DESIGNS for m in METHODS]


@pytest.mark.system("regularized-erm", "designs")
def test_sparse_dense_and_collinear(numbers: dict[str, Any]) -> None:
    """S940-DLD.216: who wins where; lasso finds more of the support; both penalties trade bias for variance."""
    excess = dict(zip(zip(numbers["design"], numbers["method"], strict=True), numbers["excess"], strict=True))
    assert excess["sparse", "lasso"] < excess["sparse", "elastic net"] < excess["sparse", "ridge"]
    assert excess["dense", "ridge"] < excess["dense", "lasso"]
    assert excess["collinear", "elastic net"] < excess["collinear", "lasso"]
    ridge_support, lasso_support, net_support = numbers["support"][:3]
    assert ridge_support == pytest.approx(4 / FEATURES)  # it uses all: right only for the true four
    assert ridge_support < net_support < lasso_support
    for name in ("bias2", "variance"):
        assert min(numbers[name]) > 0
    total = torch.tensor(numbers["bias2"]) + torch.tensor(numbers["variance"])
    close(total, torch.tensor(numbers["excess"]))


def test_variance_falls_and_bias_rises_with_lambda() -> None:
    random = torch.Generator().manual_seed(0)
    w, _ = truth("dense", random)
    x = torch.randn(60, 30, FEATURES, dtype=torch.float64, generator=random)
    y = x @ w + torch.randn(60, 30, dtype=torch.float64, generator=random)
    fitted = fits("ridge", x, y)
    close(fitted[3, 2], ridge(x[3], y[3], float(LAMBDAS[2])))
    variance, bias = fitted.var(0).sum(-1), (fitted.mean(0) - w).square().sum(-1)
    assert (variance[1:] < variance[:-1]).all()
    assert bias[-1] > 10 * bias[0]


@pytest.mark.system("regularized-erm", "equal-columns")
def test_equal_columns(numbers: dict[str, Any]) -> None:
    for method in ("ridge", "elastic net"):
        one, two = numbers["twins"][method]
        assert abs(one - two) < 1e-3
    one, two = numbers["twins"]["lasso"]
    assert abs(one - two) > 0.1


@pytest.mark.parametrize("change", ["sparse", "dense", "twins", "split", "used"])
def test_doctored_numbers_refute(numbers: dict[str, Any], change: str) -> None:
    doctored = deepcopy(numbers)
    if change in DESIGNS:
        gap, error = doctored["lasso_minus_ridge"][change]
        doctored["lasso_minus_ridge"][change] = [-gap, error]
    elif change == "twins":
        doctored["twins"]["ridge"][0] += 1e-6
    else:
        doctored[change][7] = 1.0 if change == "used" else doctored[change][8]
    assert verdict(doctored) == "refuted"


def test_noise_leaves_it_open(numbers: dict[str, Any]) -> None:
    doctored = deepcopy(numbers)
    doctored["lasso_minus_ridge"]["dense"] = [0.1, 0.1]
    assert verdict(doctored) == "open"
    for edge in (LAMBDAS[0], LAMBDAS[-1]):  # the best of a method may lie outside the grid
        doctored = deepcopy(numbers)
        doctored["lam"][4] = float(edge)
        assert verdict(doctored) == "open"


def test_figure_has_three_panels(numbers: dict[str, Any]) -> None:
    assert len(figure(numbers).axes) == 3
