"""Grid and random search: every combination once, priors against scipy and Optuna, seeds, one dimension that counts."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.model_selection import ParameterGrid

from descend.classic.search import (
    Choice,
    LogUniform,
    LogWhole,
    Prior,
    Uniform,
    Whole,
    draw,
    grid,
    grid_search,
    random_search,
)
from tests.close import close

pytestmark = pytest.mark.system("grid-and-random-search")


@pytest.mark.system("grid-and-random-search", "grid")
@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_every_combination_once(sizes: list[int]) -> None:
    lists = {f"h{i}": list(range(size)) for i, size in enumerate(sizes)}
    found = [tuple(sorted(values.items())) for values in grid(lists)]
    assert len(found) == math.prod(sizes) == len(set(found))
    assert set(found) == {tuple(sorted(values.items())) for values in ParameterGrid(lists)}


def test_the_grid_of_optuna_is_the_same_set() -> None:
    lists: dict[str, list[float]] = {"lr": [0.1, 0.01, 0.001], "beta": [0.9, 0.99], "decay": [0, 1, 2, 3]}
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.GridSampler(lists, seed=0))

    def objective(trial: optuna.Trial) -> float:
        return trial.suggest_float("lr", 0, 1) + trial.suggest_float("beta", 0, 1) + trial.suggest_int("decay", 0, 3)

    study.optimize(objective)
    theirs = Counter(tuple(sorted(t.params.items())) for t in study.trials)
    assert theirs == Counter(tuple(sorted(values.items())) for values in grid(lists))
    assert len(study.trials) == 24  # m n p


@pytest.mark.system("grid-and-random-search", "random")
@pytest.mark.parametrize(
    ("prior", "oracle"),
    [(Uniform(-2.0, 5.0), stats.uniform(-2, 7)), (LogUniform(1e-5, 0.3), stats.loguniform(1e-5, 0.3))],
)
def test_quantiles_are_those_of_scipy(prior: Prior, oracle: Any) -> None:
    u = np.linspace(0, 1, 33)
    close(np.array([prior.at(float(v)) for v in u]), oracle.ppf(u))
    assert prior.points(3) == pytest.approx([oracle.ppf(0), oracle.ppf(0.5), oracle.ppf(1)])


@pytest.mark.parametrize(
    ("prior", "theirs"),
    [
        (Uniform(-2.0, 5.0), optuna.distributions.FloatDistribution(-2.0, 5.0)),
        (LogUniform(1e-5, 0.3), optuna.distributions.FloatDistribution(1e-5, 0.3, log=True)),
        (Whole(3, 9), optuna.distributions.IntDistribution(3, 9)),
        (LogWhole(1, 64), optuna.distributions.IntDistribution(1, 64, log=True)),
        (Choice((8, 16, 32)), optuna.distributions.CategoricalDistribution((8, 16, 32))),
    ],
)
def test_draws_have_the_distribution_of_optunas_random_sampler(
    prior: Prior, theirs: optuna.distributions.BaseDistribution
) -> None:
    sampler, study = optuna.samplers.RandomSampler(seed=1), optuna.create_study()
    trial = study.ask()
    frozen = study.trials[trial.number]
    n = 3000
    expected = [sampler.sample_independent(study, frozen, "x", theirs) for _ in range(n)]
    found = [draw({"x": prior}, 0, i)["x"] for i in range(n)]
    assert stats.ks_2samp(found, expected, method="asymp").pvalue > 0.01
    bent = [prior.at(float(u) ** 1.2) for u in np.random.default_rng(0).random(n)]
    assert stats.ks_2samp(bent, expected, method="asymp").pvalue < 0.01  # it can fail


def test_every_whole_number_is_drawn() -> None:
    assert {draw({"x": Whole(3, 9)}, 0, i)["x"] for i in range(200)} == set(range(3, 10))
    assert [Whole(3, 9).at(u) for u in (0.0, 0.999, 1.0)] == [3, 9, 9]
    assert [LogWhole(1, 64).at(u) for u in (0.0, 1.0)] == [1, 64]
    assert LogWhole(8, 128).points(5) == [8, 16, 32, 64, 128]
    assert Whole(1, 3).points(5) == [1, 2, 3]  # each once


@pytest.mark.system("grid-and-random-search", "random")
def test_seeds_and_prefixes() -> None:
    priors: dict[str, Prior] = {"lr": LogUniform(1e-4, 1), "width": Choice((8, 16))}
    rows = {n: random_search(priors, lambda h: h["lr"], n, seed=4) for n in (5, 9)}
    values = [draw(priors, 4, i) for i in range(9)]
    assert sorted(r.values["lr"] for r in rows[9]) == sorted(v["lr"] for v in values)
    assert {r.values["lr"] for r in rows[5]} < {r.values["lr"] for r in rows[9]}
    assert draw(priors, 5, 0) != draw(priors, 4, 0)
    assert len({v["lr"] for v in values}) == 9


@pytest.mark.system("grid-and-random-search", "grid")
def test_the_table_begins_with_the_best() -> None:
    rows = grid_search({"a": [1, 2, 3], "b": [10, 20]}, lambda h: abs(h["a"] * h["b"] - 41))
    assert rows[0].values == {"a": 2, "b": 20}
    assert [r.score for r in rows] == sorted(r.score for r in rows)
    assert len(rows) == 6


@pytest.mark.system("grid-and-random-search", "one-dimension")
def test_random_beats_the_grid_where_one_dimension_counts() -> None:
    """MF 13.3.2: N random trials test N values of it, a grid only N^(1/d)."""
    names = ["x", "y", "z"]
    of_random, of_grid = [], []
    for seed in range(40):
        target = np.random.default_rng(seed).random()
        objective = lambda h, target=target: (h["x"] - target) ** 2
        of_random.append(random_search({n: Uniform(0, 1) for n in names}, objective, 27, seed)[0].score)
        of_grid.append(grid_search({n: Uniform(0, 1).points(3) for n in names}, objective)[0].score)
    assert np.mean(of_random) < 0.2 * np.mean(of_grid)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Uniform(1, 1),
        lambda: LogUniform(0, 1),
        lambda: Whole(4, 3),
        lambda: LogWhole(0, 8),
        lambda: Choice(()),
        lambda: Choice((1, 1)),
        lambda: Uniform(0, math.inf),
    ],
)
def test_wrong_priors(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"first|list each value once"):
        wrong()
