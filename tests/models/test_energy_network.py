"""The energy network: its equation, its normaliser, and points made by Langevin dynamics."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

import descend
from descend.contracts import Generates, Wish
from descend.engine.minimise import minimise
from descend.losses.score_matching import implicit_score_matching
from descend.models.energy_network import TINY, EnergyNetwork, EnergyNetworkConfig, NormalisedEnergyNetwork
from descend.ops.energy.score import score_of_energy
from descend.optim.rules import Adam
from descend.optim.schedules import Linear
from descend.sampling.chance import PerExample
from descend.sampling.langevin import langevin
from descend.seeds import generator
from tests.close import close

pytestmark = pytest.mark.system("gibbs-distribution")
DOUBLE = torch.float64


def test_the_equation_by_hand() -> None:
    torch.manual_seed(0)
    model = EnergyNetwork(TINY).double()
    x = torch.randn(5, 2, generator=generator(0), dtype=DOUBLE)
    h, layers = x, [part for part in model.hidden if isinstance(part, torch.nn.Linear)]
    for layer in layers:
        z = h @ layer.weight.T + layer.bias
        h = z * z.sigmoid()
    close(model(x), h @ model.out.weight[0] + x.square().sum(1) / (2 * TINY.reach**2))


def test_far_away_the_energy_is_that_of_the_wide_gaussian() -> None:
    """So Z is finite: the network grows at most in proportion to the distance, the last term with its square."""
    torch.manual_seed(0)
    model = EnergyNetwork(TINY)
    far = 1e4 * torch.nn.functional.normalize(torch.randn(9, 2, generator=generator(1)))
    assert (model(far) / (1e8 / (2 * TINY.reach**2)) - 1).abs().max() < 1e-2


@pytest.mark.system("gibbs-distribution", "model")
def test_a_gaussians_energy_is_recovered_up_to_a_constant() -> None:
    """S940-DLD.229: trained by score matching on N(1, 0.8²); compared after taking the means off."""
    torch.manual_seed(0)
    model, random = EnergyNetwork(EnergyNetworkConfig(inputs=1, width=24, depth=2)), generator(2)

    def loss() -> Tensor:
        x = 1 + 0.8 * torch.randn(512, 1, generator=random)
        return implicit_score_matching(score_of_energy(model), x).mean()

    minimise(model, loss, 400, Adam(1e-2), Linear())
    line = torch.linspace(-1, 3, 41)[:, None]
    with torch.no_grad():
        ours, true = model(line), (line[:, 0] - 1).square() / (2 * 0.64)
    assert ((ours - ours.mean()) - (true - true.mean())).abs().max() < 0.25


@pytest.mark.system("gibbs-distribution", "model")
def test_new_points_follow_the_model() -> None:
    """Without a network the energy is that of N(0, ρ²): the chains keep it, too wide by 1/(1 − η/2ρ²)."""
    model = EnergyNetwork(EnergyNetworkConfig(width=4, depth=1, reach=0.5, eta=0.05, steps=40))
    torch.nn.init.zeros_(model.out.weight)
    assert isinstance(model, Generates)
    with torch.no_grad():
        x = model.generate(PerExample(0, 4000), Wish())
        assert abs(float(x.var()) - 0.25 / (1 - 0.05 / 0.5)) < 0.01
        alone = model.generate(PerExample(0, 1, 2), Wish(steps=7))
        close(alone[0], model.generate(PerExample(0, 4), Wish(steps=7))[2])
        chance = PerExample(3, 2)
        by_hand = langevin(score_of_energy(model), 0.5 * chance.normal(2), chance.normal(7, 2).unbind(1), 0.05)
        close(model.generate(PerExample(3, 2), Wish(steps=7)), by_hand)


@pytest.mark.system("noise-contrastive-estimation")
def test_the_learned_normaliser_is_saved_with_the_model(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = NormalisedEnergyNetwork(TINY)
    with torch.no_grad():
        model.log_normaliser.fill_(math.pi)
    x = torch.randn(3, 2)
    close(model(x) - EnergyNetwork.forward(model, x), torch.full((3,), math.pi))
    model.save_pretrained(tmp_path)
    again = descend.load(tmp_path)
    assert type(again) is NormalisedEnergyNetwork
    assert torch.equal(again(x), model(x))
