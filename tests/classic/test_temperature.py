"""One temperature, learned from held-out logits: scikit-learn's and scipy's minimum; and what it cannot do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from descend.classic.temperature import HOTTEST, fit_temperature, log_loss
from descend.errors import Mistake
from descend.losses.classification import smoothed_cross_entropy
from descend.metrics.classification import expected_calibration_error, reliability
from tests.close import close


def draw(seed: int, n: int = 4000, classes: int = 5, scale: float = 2.0) -> tuple[Tensor, Tensor]:
    """Logits of true conditional probabilities, and classes drawn from these."""
    chance = torch.Generator().manual_seed(seed)
    z = scale * torch.randn(n, classes, generator=chance, dtype=torch.float64)
    return z, z.softmax(dim=-1).multinomial(1, generator=chance)[:, 0]


@pytest.mark.system("calibration-ece", "temperature")
@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
def test_it_is_scipys_minimum(factor: float) -> None:
    z, y = draw(0)
    found = minimize_scalar(lambda t: log_loss(factor * z, y, float(np.exp(t))), bounds=(-4, 4), method="bounded")
    close(torch.tensor(fit_temperature(factor * z, y)).float(), torch.tensor(float(np.exp(found.x))).float(), loosen=30)
    assert log_loss(factor * z, y, fit_temperature(factor * z, y)) <= float(found.fun) + 1e-12


@pytest.mark.system("calibration-ece", "temperature")
def test_it_is_scikit_learns() -> None:
    """`_temperature_scaling` of CalibratedClassifierCV learns the inverse."""
    calibration = pytest.importorskip("sklearn.calibration")
    z, y = draw(1)
    theirs = calibration._TemperatureScaling().fit(3 * z.numpy(), y.numpy())
    close(torch.tensor(1 / fit_temperature(3 * z, y)).float(), torch.tensor(float(theirs.beta_)).float(), loosen=30)


@pytest.mark.system("calibration-ece", "temperature")
@pytest.mark.parametrize("seed", range(3))
def test_who_was_too_sure_is_as_sure_as_right(seed: int) -> None:
    """Learned from one half, judged by the other; no answer changes."""
    z, y = draw(seed, 8000)
    z = 3 * z  # too sure by a factor of three
    t = fit_temperature(z[:4000], y[:4000])
    assert 2.7 < t < 3.3
    new, true = z[4000:], y[4000:]
    assert expected_calibration_error((new / t).softmax(-1), true) < 0.03
    assert expected_calibration_error(new.softmax(-1), true) > 0.1
    assert log_loss(new, true, t) < log_loss(new, true)
    assert torch.equal((new / t).argmax(-1), new.argmax(-1))


@pytest.mark.system("calibration-ece", "true-probabilities")
@pytest.mark.parametrize("seed", range(3))
def test_true_probabilities_are_calibrated(seed: int) -> None:
    z, y = draw(seed, 20_000)
    assert expected_calibration_error(z.softmax(-1), y) < 0.015
    assert expected_calibration_error((3 * z).softmax(-1), y) > 0.1
    assert expected_calibration_error((z / 3).softmax(-1), y) > 0.1


@pytest.mark.system("calibration-ece")
@pytest.mark.system("calibration-ece", "table")
def test_the_table_is_scikit_learns_curve() -> None:
    """Mean confidence and accuracy of each bin that has examples."""
    from sklearn.calibration import calibration_curve

    z, y = draw(2)
    p = z.softmax(-1)
    count, confidence, accuracy = reliability(p, y, 10)
    right, sure = (p.argmax(-1) == y).numpy(), p.amax(-1).numpy()
    theirs, means = calibration_curve(right, sure, n_bins=10)
    close(accuracy[count > 0], torch.tensor(theirs))
    close(confidence[count > 0], torch.tensor(means))
    gap = sum(int(n) * abs(a - c) for n, a, c in zip(count[count > 0], theirs, means, strict=True)) / len(y)
    close(expected_calibration_error(p, y), gap)


def train(seed: int, n: int, smoothing: float, steps: int) -> float:
    """ECE on new data of a network that was trained on n examples of three classes that overlap."""
    chance = torch.Generator().manual_seed(seed)
    centres = 1.2 * torch.tensor([[1.0, 0.0], [-0.5, 0.87], [-0.5, -0.87]])

    def sample(count: int) -> tuple[Tensor, Tensor]:
        y = torch.randint(3, (count,), generator=chance)
        return centres[y] + torch.randn(count, 2, generator=chance), y

    x, y = sample(n)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 3))
    optim = torch.optim.Adam(model.parameters(), 0.05)
    for _ in range(steps):
        optim.zero_grad()
        smoothed_cross_entropy(model(x), y, smoothing).mean().backward()
        optim.step()
    new, true = sample(8000)
    with torch.no_grad():
        return expected_calibration_error(model(new).softmax(-1), true)


@pytest.mark.system("calibration-ece", "smoothing")
@pytest.mark.parametrize("seed", range(3))
def test_cross_entropy_calibrates_with_enough_data_and_smoothing_helps_without(seed: int) -> None:
    """The claim of VOM 13.9.1 holds with 2,000 examples, where smoothing (0.2) makes the model too unsure; with 60 that
    are learned by heart it does not hold, and smoothing helps. (Sizes and bounds were chosen on seeds 10 to 14.)"""
    assert train(seed, 2000, 0.0, 80) < 0.04 < 0.05 < train(seed, 2000, 0.2, 80)
    sure = train(seed, 60, 0.0, 300)
    assert sure > 0.15
    assert train(seed, 60, 0.2, 300) < sure - 0.05


def test_the_ends() -> None:
    z = torch.eye(3)
    assert fit_temperature(z, torch.arange(3)) < 0.05  # always right: as cold as rounding lets it be
    assert fit_temperature(z, torch.tensor([1, 2, 0])) > 0.9 * HOTTEST  # always wrong: as hot
    with pytest.raises(Mistake, match="there are none"):
        fit_temperature(torch.empty(0, 3), torch.empty(0, dtype=torch.long))
    with pytest.raises(Mistake, match="damaged"):
        fit_temperature(torch.full((2, 3), float("nan")), torch.zeros(2, dtype=torch.long))
