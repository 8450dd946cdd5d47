"""Spectral norms: torch's numbers, singular values of 1, critics that do not stretch, and one iteration an update."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

from descend.models.gan import Discriminator
from descend.nn.adversarial.spectral import SpectralNorm, normalize_spectrum
from tests.close import close

pytestmark = pytest.mark.system("spectral-normalization")
LAYERS = {
    "dense": lambda: nn.Linear(5, 4),
    "conv": lambda: nn.Conv2d(3, 4, 3),
    "transposed": lambda: nn.ConvTranspose2d(3, 4, 3),
}


def largest(weight: torch.Tensor, outputs: int = 0) -> torch.Tensor:
    return torch.linalg.svdvals(weight.detach().movedim(outputs, 0).flatten(1))[0]


@pytest.mark.system("spectral-normalization", "torch")
@pytest.mark.parametrize("name", LAYERS)
def test_weight_and_gradient_are_torchs(name: str) -> None:
    """From the same u and v: the same W / σ, and the same gradient in W, step after step."""
    torch.manual_seed(0)
    ours = LAYERS[name]().double()
    theirs = spectral_norm(copy.deepcopy(ours))
    normalize_spectrum(ours)
    mine, other = ours.parametrizations.weight[0], theirs.parametrizations.weight[0]
    mine.u.copy_(other._u)
    mine.v.copy_(other._v)
    for step in range(3):
        with torch.no_grad():
            for layer in (ours, theirs):
                layer.parametrizations.weight.original.add_(0.1 * math.sin(step + 1))
        a, b = ours.weight, theirs.weight  # one iteration each
        close(a, b)
        target = torch.linspace(0, 1, a.numel(), dtype=torch.float64).view_as(a)
        grads = []
        for layer, weight in ((ours, a), (theirs, b)):
            grads += torch.autograd.grad((weight * target).sum(), layer.parametrizations.weight.original)
        close(*grads)


@pytest.mark.system("spectral-normalization", "unit")
@pytest.mark.parametrize("name", LAYERS)
def test_the_largest_singular_value_is_one_after_convergence(name: str) -> None:
    torch.manual_seed(1)
    layer = normalize_spectrum(LAYERS[name]().double())
    norm = layer.parametrizations.weight[0]
    for i in range(200):
        norm.seen.fill_(float(i))  # as if the weight had changed
        _ = layer.weight
    close(largest(layer.weight, norm.outputs), torch.tensor(1.0, dtype=torch.float64))


@pytest.mark.system("spectral-normalization", "lipschitz")
def test_a_critic_is_one_lipschitz() -> None:
    torch.manual_seed(0)
    critic = Discriminator(3, 16, 3).double()
    with torch.no_grad():
        for p in critic.parameters():
            p.mul_(5)
    pairs = torch.randn(2, 1000, 3, dtype=torch.float64)
    ratio = lambda: ((critic(pairs[0]) - critic(pairs[1])).abs() / (pairs[0] - pairs[1]).norm(dim=1)).max()
    assert ratio() > 2
    normalize_spectrum(critic)
    for layer in (*critic.hidden, critic.out):
        norm = layer.parametrizations.weight[0]
        for i in range(300):
            norm.seen.fill_(float(i))
            _ = layer.weight
    critic.eval()
    assert ratio() <= 1 + 1e-6


@pytest.mark.system("spectral-normalization", "once-an-update")
def test_it_iterates_once_for_each_update_of_the_weight() -> None:
    torch.manual_seed(0)
    layer = normalize_spectrum(nn.Linear(6, 5))
    norm = layer.parametrizations.weight[0]
    u = norm.u.clone()
    for _ in range(3):
        _ = layer.weight
    assert torch.equal(norm.u, u)  # the weight is the same
    with torch.no_grad():
        layer.parametrizations.weight.original.add_(torch.randn(5, 6))
    layer.eval()
    _ = layer.weight
    assert torch.equal(norm.u, u)  # evaluation changes nothing
    layer.train()
    _ = layer.weight
    once = norm.u.clone()
    assert not torch.equal(once, u)
    _ = layer.weight
    assert torch.equal(norm.u, once)


def test_every_weight_of_a_module_is_normalized() -> None:
    torch.manual_seed(0)
    module = normalize_spectrum(nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Linear(4, 1)))
    norms = [m for m in module.modules() if isinstance(m, SpectralNorm)]
    assert [tuple(n.u.shape) for n in norms] == [(3,), (1,)]
    with torch.no_grad():
        close(largest(module[0].weight), torch.tensor(1.0), loosen=100)  # fifteen iterations at the start
