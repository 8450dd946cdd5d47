from __future__ import annotations

import math

import pytest
import torch
from scipy import integrate, stats

from descend.nn.init import he, lecun, xavier
from descend.theory.signal import RELU_KEEPS, RELU_VARIANCE, grow_signal, layer_factor, risen
from tests.close import close


@pytest.mark.system("he-init")
@pytest.mark.system("he-init", "halving")
@pytest.mark.system("signal-propagation-lab")
def test_relu_halves_the_second_moment_and_not_the_variance() -> None:
    first, second = (integrate.quad(lambda z: z**k * stats.norm.pdf(z), 0, 40)[0] for k in (1, 2))
    close(RELU_KEEPS, second)
    close(RELU_VARIANCE, second - first**2)
    assert abs(RELU_VARIANCE - 0.5) > 0.1  # DLN says that the variance is halved


@pytest.mark.system("signal-propagation-lab")
@pytest.mark.system("signal-propagation-lab", "factors")
@pytest.mark.system("he-init")
@pytest.mark.system("xavier-init")
def test_factors() -> None:
    n = 77
    close([layer_factor(n, rule(n, n)) for rule in (he, xavier, lecun)], [1.0, 0.5, 0.5])
    close(layer_factor(n, lecun(n, n), kept=1.0), 1.0)
    close(grow_signal(1.0, 0.5, 10), 1 / 1024)
    close(risen(1.0, 4 / 9, 49), 22.7777777)


@pytest.mark.system("signal-propagation-lab")
@pytest.mark.system("signal-propagation-lab", "neuron-sum")
def test_variance_of_a_neuron_sum() -> None:
    """VOM-A.40: Var(Σ w_i x_i) = n Var(w) Var(x) for independent ones of mean 0."""
    random = torch.Generator().manual_seed(0)
    w, x = (torch.randn(40_000, 50, generator=random).double() * s for s in (0.3, 2.0))
    assert math.isclose((w * x).sum(-1).var().item(), 50 * 0.3**2 * 2.0**2, rel_tol=0.03)
