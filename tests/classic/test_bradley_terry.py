"""Strengths from games, against scikit-learn's and scipy's maximum, and simulated games."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from descend.classic.bradley_terry import (
    ascend,
    count_wins,
    fit_strengths,
    log_likelihood,
    strength_share,
    win_probability,
)
from descend.errors import Mistake
from tests.close import close


def games(n: int, each: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """True r, and how often each beat each in so many games."""
    random = torch.Generator().manual_seed(seed)
    r = torch.randn(n, generator=random, dtype=torch.float64)
    chance = win_probability(r[:, None], r)
    first = torch.binomial(torch.full((n, n), float(each), dtype=torch.float64), chance, generator=random).triu(1)
    return r, first + (each * torch.ones(n, n).double().triu(1) - first).T


@pytest.mark.system("bradley-terry")
def test_the_fit_is_the_maximum_that_scipy_and_logistic_regression_find() -> None:
    _, wins = games(6, 9)
    r = fit_strengths(wins)
    w = wins.numpy()

    def loss(x: np.ndarray) -> float:
        d = x[:, None] - x
        return float((w * np.logaddexp(0, -d)).sum())

    theirs = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-9}).x
    close(r, torch.tensor(theirs - theirs.mean()), loosen=1e3)  # a search on numerical gradients
    from sklearn.linear_model import LogisticRegression

    rows, y, weight = [], [], []
    for i in range(6):
        for j in range(6):
            if w[i, j]:
                row = np.zeros(6)
                row[i], row[j] = 1, -1
                rows += [row, -row]
                y += [1, 0]
                weight += [w[i, j] / 2] * 2
    fitted = LogisticRegression(C=1e10, fit_intercept=False, tol=1e-10, max_iter=5000).fit(np.array(rows), y, weight)
    close(r, torch.tensor(fitted.coef_[0] - fitted.coef_[0].mean()), loosen=1e5)  # its penalty is 1e-10, not 0


@pytest.mark.system("bradley-terry", "recovery")
def test_known_strengths_come_back_up_to_a_constant() -> None:
    truth, wins = games(8, 20_000)
    assert float((fit_strengths(wins) - (truth - truth.mean())).abs().max()) < 0.03
    exact = 1e6 * win_probability(truth[:, None], truth)
    close(fit_strengths(exact), truth - truth.mean(), loosen=10)


@pytest.mark.system("bradley-terry", "likelihood-rises")
def test_every_step_of_the_plain_rule_raises_the_likelihood() -> None:
    _, wins = games(7, 3, seed=4)
    wins.fill_diagonal_(0)
    r, seen = torch.zeros(7, dtype=torch.float64), []
    for _ in range(300):
        seen.append(float(log_likelihood(r, wins)))
        r = ascend(r, wins)
    assert all(b >= a - 1e-9 for a, b in pairwise(seen))
    close(r, fit_strengths(wins), loosen=100)  # it converges linearly


@pytest.mark.system("bradley-terry", "probabilities")
def test_strengths_and_rewards_say_the_same_and_match_the_share_of_wins() -> None:
    p = torch.tensor([2.0, 1.0, 5.0], dtype=torch.float64)
    close(strength_share(p[:, None], p), win_probability(p.log()[:, None], p.log()))
    chance = win_probability(torch.tensor(1.5), torch.tensor(-0.5))
    won = torch.bernoulli(chance.expand(100_000), generator=torch.Generator().manual_seed(0)).mean()
    assert abs(float(won - chance)) < 4 * float((chance * (1 - chance) / 1e5).sqrt())


@pytest.mark.system("bradley-terry", "identifiable")
@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([(0, 1), (1, 0), (2, 3), (3, 2)], "items 0, 1 never met the others"),
        ([(0, 1), (1, 0), (0, 2), (1, 2)], "items 0, 1 never lost to the others"),
        ([(0, 1), (1, 0), (2, 0), (2, 1)], "items 0, 1 never won against the others"),
    ],
)
def test_games_that_leave_strengths_open_are_refused(pairs: list[tuple[int, int]], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        fit_strengths(count_wins(torch.tensor(pairs), 1 + max(map(max, pairs))))


def test_what_is_no_table_of_wins_is_refused() -> None:
    for wrong in (torch.ones(2, 3), torch.tensor([[0.0, -1.0], [1.0, 0.0]]), torch.ones(1, 1)):
        with pytest.raises(Mistake, match="wins"):
            fit_strengths(wrong)
