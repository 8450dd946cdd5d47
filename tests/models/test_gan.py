"""Generator and discriminator are the networks that their file describes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.models.gan import Discriminator, GANConfig, Generator
from tests.close import close

pytestmark = pytest.mark.system("gan")


def test_generator_is_dense_relu_layers() -> None:
    torch.manual_seed(0)
    g = Generator(GANConfig(latent=3, outputs=2, width=5, depth=2))
    same = nn.Sequential(g.hidden[0], nn.ReLU(), g.hidden[1], nn.ReLU(), g.out)
    z = torch.randn(7, 3)
    close(g(z), same(z))
    assert sum(p.numel() for p in g.parameters()) == (3 + 1) * 5 + (5 + 1) * 5 + (5 + 1) * 2


def test_discriminator_gives_one_logit_for_each_point() -> None:
    torch.manual_seed(0)
    d = Discriminator(2, width=5, depth=2)
    same = nn.Sequential(d.hidden[0], nn.LeakyReLU(0.2), d.hidden[1], nn.LeakyReLU(0.2), d.out)
    x = torch.randn(7, 2)
    assert d(x).shape == (7,)
    close(d(x), same(x)[:, 0])


def test_an_affine_generator_pushes_a_gaussian_to_a_gaussian() -> None:
    """Without hidden layers G(z) = A z + b, so G(z) ~ N(b, A Aᵀ)."""
    torch.manual_seed(0)
    g = Generator(GANConfig(latent=2, outputs=2, depth=0, width=2))
    with torch.no_grad():
        x = g(torch.randn(40_000, 2))
    a, b = g.out.weight.detach(), g.out.bias.detach()
    assert (x.mean(dim=0) - b).abs().max() < 0.02
    assert (x.T.cov() - a @ a.T).abs().max() < 0.02
