"""Langevin dynamics: two conventions, paths, ascent, and several noise levels."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.data.toys.mixture import Mixture
from descend.sampling.langevin import (
    annealed_langevin,
    ascend_score,
    langevin,
    langevin_by_delta,
    langevin_path,
    level_rates,
)
from descend.seeds import generator
from tests.close import close

DOUBLE = torch.float64
PAIR = Mixture(*(torch.tensor(v, dtype=DOUBLE) for v in ([0.5, 0.5], [[-3.0, 0.0], [3.0, 0.0]], [1.0, 1.0])))


def noises(steps: int, n: int = 6, seed: int = 0) -> list[Tensor]:
    return list(torch.randn(steps, n, 2, generator=generator(seed), dtype=DOUBLE))


@pytest.mark.system("langevin-sampler")
@pytest.mark.system("langevin-sampler", "both-conventions")
def test_both_conventions_are_the_same_steps() -> None:
    x = torch.randn(6, 2, generator=generator(1), dtype=DOUBLE)
    close(langevin_by_delta(PAIR.score, x, noises(20), 0.2), langevin(PAIR.score, x, noises(20), 0.1))
    assert not torch.allclose(
        langevin_by_delta(PAIR.score, x, noises(20), 0.1), langevin(PAIR.score, x, noises(20), 0.1)
    )


@pytest.mark.system("langevin-sampler", "path", "steps")
def test_k_noises_are_k_updates() -> None:
    x = torch.randn(6, 2, generator=generator(1), dtype=DOUBLE)
    path = langevin_path(PAIR.score, x, noises(10), 0.1)
    assert path.shape == (11, 6, 2)
    assert torch.equal(path[0], x)
    assert torch.equal(path[-1], langevin(PAIR.score, x, noises(10), 0.1))
    by_hand = x + 0.1 * PAIR.score(x) + 0.2**0.5 * noises(10)[0]
    close(path[1], by_hand)


@pytest.mark.system("langevin-sampler", "against-ascent")
def test_ascent_collapses_and_noise_keeps_the_spread() -> None:
    """From N(0, 1) near both modes: without noise all of a basin end at its mode; with noise σ = 1 remains."""
    x = torch.randn(2000, 2, generator=generator(2), dtype=DOUBLE)
    up = ascend_score(PAIR.score, x, 0.05, 400)
    assert up.shape == (401, 2000, 2)
    right = up[-1][up[-1][:, 0] > 0]
    assert right.std(0).max() < 1e-3
    assert 0.4 < len(right) / 2000 < 0.6, "not one mode: the mode of the basin that it starts in"
    walked = langevin(PAIR.score, x, noises(200, 2000), 0.05)
    spread = walked[walked[:, 0] > 0].std(0)
    assert (spread - 1).abs().max() < 0.1


@pytest.mark.system("annealed-langevin")
@pytest.mark.system("annealed-langevin", "one-level")
def test_one_level_is_plain() -> None:
    x = torch.randn(6, 2, generator=generator(3), dtype=DOUBLE)
    ours = annealed_langevin(lambda x, level: PAIR.score(x), x, [noises(15)], [0.1])
    assert torch.equal(ours, langevin(PAIR.score, x, noises(15), 0.1))


@pytest.mark.system("annealed-langevin", "step-rule", "one-step")
def test_levels_in_turn_with_their_rates() -> None:
    """By hand, three levels with 2, 1 and 3 steps; one step for each level is possible."""
    sigmas = [4.0, 2.0, 0.5]
    rates = level_rates(sigmas, 0.01)
    close(torch.tensor(rates), torch.tensor([0.01 * 64, 0.01 * 16, 0.01]))
    wider = [Mixture(PAIR.pi, PAIR.mu, (PAIR.sigma**2 + s**2).sqrt()) for s in sigmas]
    x = torch.randn(6, 2, generator=generator(4), dtype=DOUBLE)
    steps = [noises(2, seed=5), noises(1, seed=6), noises(3, seed=7)]
    by_hand = x
    for mixture, rate, few in zip(wider, rates, steps, strict=True):
        by_hand = langevin(mixture.score, by_hand, few, rate)
    assert torch.equal(annealed_langevin(lambda x, i: wider[i].score(x), x, steps, rates), by_hand)
    single = annealed_langevin(lambda x, i: wider[i].score(x), x, [noises(1)] * 3, rates)
    assert single.isfinite().all()
    with pytest.raises(ValueError, match=r"longer|shorter"):
        annealed_langevin(lambda x, i: wider[i].score(x), x, [noises(1)] * 2, rates)
