"""MAE, RMSE and R² beside scikit-learn's; what R² means at its ends."""

from __future__ import annotations

import math

import pytest
import torch
from sklearn import metrics

from descend.metrics.regression import mean_absolute_error, r_squared, root_mean_squared_error


def test_the_errors_are_scikit_learns() -> None:
    torch.manual_seed(0)
    y, predicted = torch.randn(50), torch.randn(50)
    assert mean_absolute_error(predicted, y) == pytest.approx(metrics.mean_absolute_error(y, predicted), rel=1e-6)
    assert root_mean_squared_error(predicted, y) == pytest.approx(
        metrics.root_mean_squared_error(y, predicted), rel=1e-6
    )
    assert r_squared(predicted, y) == pytest.approx(metrics.r2_score(y, predicted), rel=1e-6)


def test_r_squared_is_1_for_the_truth_and_0_for_the_mean() -> None:
    y = torch.tensor([1.0, 2.0, 6.0])
    assert r_squared(y, y) == 1
    assert r_squared(y.mean().expand(3), y) == pytest.approx(0, abs=1e-12)
    assert r_squared(-y, y) < 0
    assert math.isnan(r_squared(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 3.0])))
