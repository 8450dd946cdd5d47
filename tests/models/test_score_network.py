"""The noise-conditional score network: its equation, its levels, and points by annealed Langevin dynamics."""

from __future__ import annotations

import pytest
import torch

from descend.contracts import Generates, Wish
from descend.models.score_network import TINY, ScoreNetwork, ScoreNetworkConfig, spread_levels
from descend.sampling.chance import PerExample
from descend.sampling.langevin import annealed_langevin
from descend.seeds import generator
from tests.close import close

pytestmark = pytest.mark.system("multi-scale-score-model")


def test_the_equation_by_hand() -> None:
    torch.manual_seed(0)
    model = ScoreNetwork(TINY).double()
    x, level = torch.randn(4, 2, generator=generator(0), dtype=torch.float64), torch.tensor([0, 1, 1, 0])
    sigma = torch.tensor([2.0, 0.5, 0.5, 2.0], dtype=torch.float64)[:, None]
    u = x / (1 + sigma**2).sqrt()
    h = torch.nn.functional.silu(model.hidden[0](u) + model.level.weight[level])
    rest = model.out(torch.nn.functional.silu(model.hidden[1](h)))
    close(model(x, level), sigma * x / (1 + sigma**2) + rest)
    for i in (0, 1):
        close(model.score(x, i), -model(x, torch.full((4,), i)) / (2.0, 0.5)[i])


@pytest.mark.system("multi-scale-score-model", "weights")
def test_levels_fall_from_the_noisiest() -> None:
    model = ScoreNetwork(ScoreNetworkConfig(levels=5, first=8.0, last=0.5))
    close(torch.tensor(model.sizes), torch.tensor([8.0, 4.0, 2.0, 1.0, 0.5]))
    close(model.sigma(torch.tensor([4, 0]))[:, 0], torch.tensor([0.5, 8.0]))
    assert spread_levels(8.0, 0.5, 5) == model.sizes


@pytest.mark.system("annealed-langevin", "step-rule")
def test_new_points_go_through_all_levels() -> None:
    torch.manual_seed(0)
    model = ScoreNetwork(TINY)
    assert isinstance(model, Generates)
    with torch.no_grad():
        chance = PerExample(5, 3)
        x = (4 + 1) ** 0.5 * chance.normal(2)
        noises = [chance.normal(3, 2).unbind(1) for _ in range(2)]
        by_hand = annealed_langevin(model.score, x, noises, [0.4 * 4.0, 0.4 * 0.25])
        close(model.generate(PerExample(5, 3), Wish()), by_hand)
        close(model.generate(PerExample(5, 1, 2), Wish(steps=2))[0], model.generate(PerExample(5, 3), Wish(steps=2))[2])
