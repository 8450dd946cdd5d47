"""Learning rate and batch of a larger model, and the bottom of a sweep."""

from __future__ import annotations

import math

import numpy as np
import pytest

from descend.errors import Mistake
from descend.theory.hyperparameter_transfer import find_optimum, measure_exponent, transfer
from tests.close import close


@pytest.mark.system("hyperparameter-transfer", "rule")
@pytest.mark.system("hyperparameter-transfer")
def test_a_hundred_times_the_parameters() -> None:
    close(transfer(1e-3, 64, 1e7, 1e9), (1e-4, 640.0))
    back = transfer(*transfer(1e-3, 64, 1e7, 3e9), 3e9, 1e7)
    close(back, (1e-3, 64.0))
    with pytest.raises(Mistake, match="lr = 0"):
        transfer(0.0, 64, 1e7, 1e9)


def test_the_bottom_of_a_sweep() -> None:
    rates = [1e-3, 2e-3, 5e-3, 1e-2, 3e-2]
    close(find_optimum(rates, [2 + (math.log(r) - math.log(4e-3)) ** 2 for r in rates]), 4e-3)
    with pytest.raises(Mistake, match="widen it"):
        find_optimum(rates, [5, 4, 3, 2, 1])
    sizes = [1e4, 1e5, 1e6]
    theirs = np.polyfit(np.log(sizes), np.log([3e-3, 2e-3, 4e-4]), 1)[0]
    close(measure_exponent(sizes, [3e-3, 2e-3, 4e-4]), theirs)
