"""Ensembles: error = mean error − disagreement; bagging and its out-of-bag estimate; forests against scikit-learn."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from torch import Tensor

from descend.classic.ensembles import Bagged, Ensemble, ambiguity, bag, bootstrap, distinct_share
from descend.classic.forest import classifying_forest, regressing_forest
from descend.errors import Mistake
from tests.close import close


@pytest.mark.system("ensembles-and-bagging")
@pytest.mark.system("ensembles-and-bagging", "ambiguity")
@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 1000))
def test_error_is_mean_error_minus_disagreement(m: int, n: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    f, y = torch.randn(m, n, generator=random).double(), torch.randn(n, generator=random).double()
    found = ambiguity(f, y)
    close(found.ensemble, (f.mean(0) - y).square().mean())
    close(found.ensemble, found.mean - found.disagreement, loosen=1e3)  # cancellation
    assert found.ensemble <= found.mean * (1 + 1e-12)  # never worse than the average member


@pytest.mark.system("ensembles-and-bagging")
def test_a_good_member_can_beat_the_ensemble() -> None:
    """Better than EVERY member is not guaranteed."""
    found = ambiguity(torch.tensor([[1.0, 1.0], [5.0, 5.0]]), torch.ones(2))
    assert found.individual[0] < found.ensemble < found.mean


@pytest.mark.system("ensembles-and-bagging")
@pytest.mark.system("ensembles-and-bagging", "average-and-vote")
def test_mean_and_vote() -> None:
    p = torch.tensor([[[0.6, 0.4, 0.0]], [[0.6, 0.4, 0.0]], [[0.0, 0.9, 0.1]]])
    ensemble = Ensemble([lambda x, p=p: p for p in p])
    close(ensemble(torch.zeros(1, 1)), p.mean(0))
    assert ensemble(torch.zeros(1, 1)).argmax(-1).tolist() == [1]
    assert ensemble.vote(torch.zeros(1, 1)).tolist() == [0]
    with pytest.raises(Mistake, match="at least 1 member"):
        Ensemble([])


@pytest.mark.system("ensembles-and-bagging")
@pytest.mark.system("ensembles-and-bagging", "bootstrap")
def test_bootstrap() -> None:
    """Of equal size, with replacement; a share 1 − (1 − 1/n)ⁿ is distinct."""
    random = torch.Generator().manual_seed(0)
    samples = torch.stack([bootstrap(50, random) for _ in range(400)])
    assert samples.shape == (400, 50)
    assert (samples.min(), samples.max()) == (0, 49)
    shares = torch.tensor([len(s.unique()) / 50 for s in samples])
    assert abs(shares.mean() - distinct_share(50)) < 5 * shares.std() / 20
    assert distinct_share(1) == 1.0
    assert math.isclose(distinct_share(10**6), 1 - math.exp(-1), rel_tol=1e-6)
    again = torch.Generator().manual_seed(0)
    assert torch.equal(bootstrap(50, again), samples[0])


def tree(x: Tensor, y: Tensor) -> object:
    fitted = DecisionTreeRegressor(random_state=0).fit(x.numpy(), y.numpy())
    return lambda x: torch.from_numpy(fitted.predict(x.numpy()))


@pytest.mark.system("ensembles-and-bagging")
@pytest.mark.system("ensembles-and-bagging", "variance")
def test_bagging_lowers_the_variance() -> None:
    """Of the prediction over fresh training sets, and the error with it."""
    random = torch.Generator().manual_seed(0)
    at = torch.linspace(-1, 1, 50).double()[:, None]
    single, bagged = [], []
    for seed in range(12):
        x = 2 * torch.rand(60, 1, dtype=torch.float64, generator=random) - 1
        y = (3 * x[:, 0]).sin() + 0.5 * torch.randn(60, dtype=torch.float64, generator=random)
        single.append(tree(x, y)(at))
        bagged.append(bag(tree, x, y, 20, seed)(at))
    one, many = (torch.stack(p) for p in (single, bagged))
    assert many.var(0).mean() < 0.6 * one.var(0).mean()
    truth = (3 * at[:, 0]).sin()
    assert (many - truth).square().mean() < 0.7 * (one - truth).square().mean()


@pytest.mark.system("ensembles-and-bagging")
def test_out_of_bag_by_hand() -> None:
    """Three members, four examples; the last is in every bag."""
    rows = torch.tensor([[0, 3, 3, 3], [1, 3, 1, 3], [2, 1, 3, 3]])
    model = Bagged([lambda x, c=c: torch.full((len(x),), c) for c in (1.0, 2.0, 6.0)], rows)
    found = model.out_of_bag(torch.zeros(4, 1))
    close(found, torch.tensor([4.0, 1.0, 1.5, math.nan]))


@pytest.mark.system("random-forest")
@pytest.mark.system("random-forest", "out-of-bag")
def test_out_of_bag_is_scikit_learns() -> None:
    """Its trees and its bags in our ensemble give its out-of-bag probabilities and its predictions."""
    x, y = load_breast_cancer(return_X_y=True)
    theirs = RandomForestClassifier(30, oob_score=True, random_state=0).fit(x, y)
    members = [lambda x, t=t: torch.from_numpy(t.predict_proba(x.numpy())) for t in theirs.estimators_]
    rows = torch.stack([torch.from_numpy(r).long() for r in theirs.estimators_samples_])
    ours = Bagged(members, rows)
    close(ours.out_of_bag(torch.from_numpy(x)), theirs.oob_decision_function_)
    close(ours(torch.from_numpy(x)), theirs.predict_proba(x))


@pytest.mark.system("random-forest")
@pytest.mark.system("random-forest", "tables", "better-than-a-tree", "out-of-bag")
def test_classifying_forest() -> None:
    """Better than one tree, as good as scikit-learn's, and the out-of-bag estimate is near the test accuracy."""
    x, y = (torch.from_numpy(a) for a in load_breast_cancer(return_X_y=True))
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(1))
    train, test = order[:300], order[300:]
    forest = classifying_forest(x[train], y[train], trees=60, seed=0)
    p = forest(x[test])
    close(p.sum(1), torch.ones(len(test), dtype=torch.float64))
    accuracy = (p.argmax(1) == y[test]).double().mean()
    one = DecisionTreeClassifier(random_state=0).fit(x[train], y[train]).score(x[test], y[test])
    theirs = RandomForestClassifier(60, random_state=0).fit(x[train], y[train]).score(x[test], y[test])
    assert accuracy > one + 0.01
    assert abs(accuracy - theirs) < 0.02
    out = forest.out_of_bag(x[train])
    assert abs((out.argmax(1) == y[train]).double().mean() - accuracy) < 0.03
    assert torch.equal(classifying_forest(x[train], y[train], 60, 0)(x[test]), p)


@pytest.mark.system("random-forest")
def test_a_class_that_a_sample_lacks() -> None:
    x, y = torch.arange(12.0)[:, None], torch.tensor([0] * 11 + [2])  # class 1 is nowhere, 2 once
    p = classifying_forest(x, y, trees=5)(x)
    assert p.shape == (12, 3)
    assert p[:, 1].sum() == 0


@pytest.mark.system("random-forest")
@pytest.mark.system("random-forest", "tables", "better-than-a-tree")
def test_regressing_forest() -> None:
    x, y = (torch.from_numpy(a) for a in load_diabetes(return_X_y=True))
    forest = regressing_forest(x[:300], y[:300], trees=30)
    error = (forest(x[300:]) - y[300:]).square().mean()
    assert error < 0.7 * (tree(x[:300], y[:300])(x[300:]) - y[300:]).square().mean()
    assert abs((forest.out_of_bag(x[:300]) - y[:300]).square().mean() / error - 1) < 0.2
