"""Noise in training only, of the size that was asked for; on the inputs of a linear unit it is ridge."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.classic.ridge import ridge
from descend.nn.noise import GaussianNoise, NoisyWeights, expected_square, noise_penalty
from tests.close import close

pytestmark = pytest.mark.system("noise-regularization")
N = 100_000


@pytest.mark.system("noise-regularization", "places")
def test_size_of_the_noise() -> None:
    torch.manual_seed(0)
    sigma = torch.tensor([0.1, 0.5, 2.0])
    h = torch.ones(N, 3)
    noise = GaussianNoise(sigma)(h) - h
    assert ((noise.std(0) / sigma - 1).abs() < 5 / (2 * N) ** 0.5).all()
    assert ((noise.mean(0) / sigma).abs() < 5 / N**0.5).all()
    assert abs(GaussianNoise(0.3)(torch.zeros(N)).std() / 0.3 - 1) < 5 / (2 * N) ** 0.5
    with pytest.raises(ValueError, match="0 or more"):
        GaussianNoise(-1.0)


@pytest.mark.system("noise-regularization", "off")
def test_off_at_test() -> None:
    model = NoisyWeights(nn.Sequential(nn.Linear(4, 5), GaussianNoise(0.3), nn.Linear(5, 2)), 0.1)
    x = torch.randn(3, 4)
    torch.manual_seed(0)
    assert not torch.equal(model(x), model(x))
    model.eval()
    clean = nn.Sequential(model.model[0], model.model[2])
    assert torch.equal(model(x), clean(x))
    assert not GaussianNoise(0.5).state_dict()  # a setting, not a weight


@pytest.mark.system("noise-regularization", "places")
def test_noise_on_weights_spares_biases() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(2000, 1000)
    model = NoisyWeights(layer, 0.2)
    bias_only = model(torch.zeros(1, 2000))
    assert torch.equal(bias_only[0], layer.bias)
    x = torch.zeros(1, 2000)
    x[0, 7] = 1.0
    noise = model(x)[0] - layer(x)[0]
    assert abs(noise.std() / 0.2 - 1) < 5 / 2000**0.5
    model(torch.ones(3, 2000)).sum().backward()
    close(layer.weight.grad, torch.full((1000, 2000), 3.0))  # the gradient reaches the clean weights
    with pytest.raises(ValueError, match="0 or more"):
        NoisyWeights(layer, -0.2)


@pytest.mark.system("noise-regularization", "ridge")
def test_expected_error_is_the_mean_over_noise() -> None:
    """DLN-Noise-as-L2: 1.61, by our own layer within 5 standard errors."""
    torch.manual_seed(0)
    w, x = torch.tensor([2.0, -1.0]).double(), torch.tensor([1.0, 2.0]).double()
    sigma, t = torch.tensor([0.3, 0.5]).double(), torch.tensor(1.0).double()
    errors = (GaussianNoise(sigma)(x.expand(N, 2)) @ w - t).square()
    exact = expected_square(w, x, t, sigma)
    close(exact, torch.tensor(1.61, dtype=torch.float64), loosen=100)  # σ came through float32
    assert abs(errors.mean() - exact) < 5 * errors.std() / N**0.5
    assert torch.autograd.gradcheck(lambda w: noise_penalty(w, sigma), w.requires_grad_())


@pytest.mark.system("noise-regularization", "ridge")
def test_input_noise_is_ridge() -> None:
    """The minimum of the summed expected error is (XᵀX + Nσ²I)⁻¹ Xᵀt, exactly; and SGD under real noise comes near."""
    random = torch.Generator().manual_seed(1)
    x = torch.randn(20, 3, dtype=torch.float64, generator=random)
    t = x @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    sigma = 0.8
    w = ridge(x, t, len(x) * sigma**2).requires_grad_()
    summed = expected_square(w, x, t, torch.full((3,), sigma, dtype=torch.float64)).sum()
    assert torch.autograd.grad(summed, w)[0].abs().max() < 1e-12
    torch.manual_seed(2)
    noisy = GaussianNoise(sigma)(x.repeat(5000, 1))
    fitted = torch.linalg.lstsq(noisy, t.repeat(5000)[:, None]).solution[:, 0]
    assert (fitted - w).abs().max() < 0.02
    assert (fitted - ridge(x, t, 0.0)).abs().max() > 0.2
