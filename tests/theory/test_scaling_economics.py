"""Supplies, costs, forecasts, mixtures and tails: closed forms against searches."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from descend.errors import Mistake
from descend.theory.compute_optimal import minimise, optimum, training_flops
from descend.theory.data_supply import POOLS, Supply, check_pools
from descend.theory.modality_mix import fit_modalities, mix, weighted_loss
from descend.theory.pattern_tail import frequency, tail_mass, tail_slope
from descend.theory.scaling_laws import HOFFMANN, KAPLAN_C, PowerLaw
from descend.theory.training_cost import (
    Lifetime,
    efficiency,
    energy,
    factor_for_ratio,
    gpus_needed,
    inference_ratio,
    price_after,
    run_cost,
    years_until,
)
from tests.close import close


@pytest.mark.system("data-constraints-and-epochs", "accounting")
@pytest.mark.system("data-constraints-and-epochs")
def test_demand_against_supply() -> None:
    seven = Supply(7e9, 35e9)
    close([seven.wanted, seven.epochs, seven.largest], [140e9, 4.0, 1.75e9])
    low, high = POOLS["good text in all"]
    close([Supply(1, low).largest, Supply(1, high).largest], [250e9, 750e9])
    with pytest.raises(Mistake, match="above 0"):
        Supply(1e9, 0)


@pytest.mark.system("data-constraints-and-epochs", "strategies")
def test_advice_begins_with_the_cheapest() -> None:
    assert Supply(1e9, 1e12).advise() == ["train: the data suffice without repeating any of them"]
    assert Supply(7e9, 35e9).advise()[0] == "repeat the data: 4 epochs"
    assert "more than the 4" in Supply(7e9, 3.5e9).advise()[0]
    assert any("collapse" in said for said in Supply(7e9, 3.5e9).advise())


@pytest.mark.system("data-constraints-and-epochs", "pools")
def test_the_pool_is_smaller_than_its_web_part() -> None:
    assert not check_pools([POOLS["web, filtered"], POOLS["books"]], POOLS["good text in all"])
    assert check_pools([(1, 2), (1, 1)], (2, 3))


@pytest.mark.system("scaling-economics", "run", "efficiency")
@pytest.mark.system("scaling-economics")
def test_sums_of_a_run() -> None:
    close(run_cost(25_000, 90, 2), 108e6)
    assert (gpus_needed(1e12), gpus_needed(40e9), gpus_needed(40.1e9)) == (25, 1, 2)
    close(efficiency(training_flops(7e9, 140e9), 3.5e6, 5 * 1e15), 0.336)
    close(energy(25_000, 400, 24), 240_000.0)
    close(inference_ratio(70e9, 7e9), 10.0)


@pytest.mark.system("scaling-economics", "halving")
def test_half_the_loss_and_a_hundred_times_the_compute() -> None:
    close(factor_for_ratio(0.5), 2.0**20)
    close(KAPLAN_C(1e21 * factor_for_ratio(0.5)) / KAPLAN_C(1e21), 0.5)
    assert KAPLAN_C(1e23) / KAPLAN_C(1e21) == pytest.approx(0.794, abs=5e-4)


@pytest.mark.system("scaling-economics", "lifetime")
def test_a_model_that_is_asked_often_should_be_smaller() -> None:
    n, d = optimum(HOFFMANN, 1e22)
    loss = HOFFMANN(n, d)
    unasked = Lifetime(HOFFMANN, loss, 0.0)
    assert unasked.best_size() == pytest.approx(n, rel=1e-4)
    sizes = [Lifetime(HOFFMANN, loss, queries).best_size() for queries in (0, 1e8, 1e9, 1e10)]
    assert sizes == sorted(sizes, reverse=True)
    asked = Lifetime(HOFFMANN, loss, 1e10)
    small = sizes[-1]
    assert HOFFMANN(small, asked.tokens(small)) == pytest.approx(loss, rel=1e-9)
    assert asked.tokens(small) > asked.tokens(n)
    assert asked.flops(small) < min(asked.flops(f * small) for f in (0.8, 1.25, n / small))
    close(asked.serving(10 * n) / asked.serving(n), 10.0)
    assert asked.tokens(1e3) == math.inf


@pytest.mark.system("scaling-economics", "forecast")
def test_forecasts_are_closed_forms() -> None:
    close(years_until(1e25, 1e27, 4.0), math.log(100) / math.log(4))
    assert years_until(1e27, 1e25, 4.0) == 0
    close(price_after(100.0, 3), 34.3)
    with pytest.raises(Mistake, match="above 1"):
        years_until(1, 2, 1.0)


LAWS = {"text": PowerLaw(1e9, 0.10, 1.2), "images": PowerLaw(1e8, 0.25, 0.4)}


@pytest.mark.system("multimodal-scaling", "planted")
@pytest.mark.system("multimodal-scaling")
def test_planted_exponents_come_back() -> None:
    tokens = np.geomspace(1e5, 1e8, 7).tolist()
    plain = {name: PowerLaw(law.scale, law.alpha) for name, law in LAWS.items()}
    for laws, floors in ((LAWS, list(LAWS)), (plain, [])):
        found = fit_modalities({name: [(d, law(d)) for d in tokens] for name, law in laws.items()}, floors)
        close([found[name].law.alpha for name in LAWS], [0.10, 0.25])


@pytest.mark.system("multimodal-scaling", "mix")
def test_the_best_mix_is_that_of_a_search() -> None:
    weights = {"text": 2.0, "images": 1.0}
    for tokens in (1e6, 1e9):
        ours = mix(LAWS, weights, tokens)
        close(sum(ours.values()) / tokens, 1.0)
        cost = lambda share: weighted_loss(LAWS, weights, {"text": share * tokens, "images": (1 - share) * tokens})
        theirs = minimize_scalar(cost, bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-10}).x
        assert ours["text"] / tokens == pytest.approx(theirs, rel=1e-5)
    share = [mix(LAWS, weights, tokens)["text"] / tokens for tokens in (1e6, 1e9, 1e12)]
    assert share == sorted(share)  # the smaller exponent takes over
    with pytest.raises(Mistake, match="same modalities"):
        mix(LAWS, {"text": 1.0}, 1e6)
    with pytest.raises(Mistake, match="above 0"):
        mix(LAWS, {"text": 1.0, "images": 0.0}, 1e6)


@pytest.mark.system("scaling-explanations", "zipf")
@pytest.mark.system("scaling-explanations")
def test_the_tail_of_zipfs_law_is_a_power_law() -> None:
    for a in (0.2, 0.5, 1.0):
        close(tail_mass(30, a), 1 - sum(frequency(k, a) for k in range(1, 31)))
        assert tail_slope(1e5, a) == pytest.approx(a, abs=1e-3)
    with pytest.raises(Mistake, match="finite sum"):
        tail_mass(10, 0.0)


@pytest.mark.system("scaling-explanations", "zipf")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_drawn_patterns_leave_such_a_tail(seed: int) -> None:
    drawn = np.random.default_rng(seed).zipf(1.5, 400_000)
    known = np.array([10, 30, 100, 300, 1000])
    missed = [(drawn > n).mean() for n in known]
    slope = -np.polyfit(np.log(known), np.log(missed), 1)[0]
    assert slope == pytest.approx(0.5, abs=0.03)


def test_search_and_closed_form_agree_on_the_optimum() -> None:
    n, _ = minimise(HOFFMANN, 1e22)
    assert n == pytest.approx(optimum(HOFFMANN, 1e22)[0], rel=1e-6)
