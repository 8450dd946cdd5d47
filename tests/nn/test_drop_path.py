"""Stochastic depth."""

from __future__ import annotations

import pytest
import torch

from descend.nn.drop_path import DropPath, path_rates
from tests.close import close


def test_whole_examples_are_dropped_and_the_mean_stays() -> None:
    torch.manual_seed(0)
    layer, x = DropPath(0.25), torch.ones(4000, 3, 2)
    y = layer(x)
    assert y.flatten(1).unique(dim=0).tolist() == [[0.0] * 6, [pytest.approx(4 / 3)] * 6]
    assert abs(float(y.mean()) - 1) < 0.05
    assert layer.eval()(x) is x


def test_rates_grow_evenly() -> None:
    close(torch.tensor(path_rates(0.3, 4)), torch.tensor([0.0, 0.1, 0.2, 0.3]))
    assert path_rates(0.3, 1) == [0.0]
    with pytest.raises(ValueError, match="less than 1"):
        DropPath(1.0)
