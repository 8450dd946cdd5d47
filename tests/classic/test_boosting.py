"""AdaBoost and gradient boosting: scikit-learn, the bound, monotone training loss, residuals."""

from __future__ import annotations

import math

import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from torch import Tensor
from torch.nn import functional as F

from descend.classic.boosting import Stump, adaboost, best_stump, reweigh
from descend.classic.gradient_boosting import GradientBoosting, Tree, leaf_value
from descend.errors import Mistake
from tests.close import close

pytestmark = pytest.mark.system("boosting")


def cancer(n: int = 200) -> tuple[Tensor, Tensor]:
    x, y = load_breast_cancer(return_X_y=True)
    return torch.from_numpy(x[:n, :6]), torch.from_numpy(2.0 * y[:n] - 1)


def diabetes(n: int = 200) -> tuple[Tensor, Tensor]:
    x, y = load_diabetes(return_X_y=True)
    return torch.from_numpy(x[:n]), torch.from_numpy(y[:n])


def scikit_stump(x: Tensor, y: Tensor, w: Tensor) -> object:
    fitted = DecisionTreeClassifier(max_depth=1, random_state=0).fit(x.numpy(), y.numpy(), w.numpy())
    return lambda x: torch.from_numpy(fitted.predict(x.numpy()))


def test_adaboost_is_scikit_learns() -> None:
    """With its stumps: the same errors, half its learner weights, the same decisions at every round."""
    x, y = cancer()
    ours = adaboost(x, y, 12, scikit_stump)
    theirs = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1, random_state=0), n_estimators=12)
    theirs.fit(x.numpy(), y.numpy())
    close(torch.tensor(ours.alphas, dtype=torch.float64), theirs.estimator_weights_ / 2)
    close(torch.tensor(ours.errors, dtype=torch.float64), theirs.estimator_errors_)
    for margin, decided in zip(ours.margins(x), theirs.staged_predict(x.numpy()), strict=True):
        assert torch.equal(margin.sign(), torch.from_numpy(decided))


@pytest.mark.system("boosting", "reweighting")
def test_weights_follow_mistakes() -> None:
    """Wrong cases gain weight, right ones lose it, and the learner just made is worth nothing on the new weights."""
    x, y = cancer()
    model = adaboost(x, y, 8)
    for t, learner in enumerate(model.learners):
        before, after, wrong = model.weights[t], model.weights[t + 1], learner(x) != y
        assert (after[wrong] > before[wrong]).all()
        assert (after[~wrong] < before[~wrong]).all()
        close(after.sum(), torch.tensor(1.0, dtype=torch.float64))
        close(after[wrong].sum(), torch.tensor(0.5, dtype=torch.float64))


@pytest.mark.system("boosting", "reweighting")
def test_training_error_falls_below_its_bound() -> None:
    x, y = cancer()
    model = adaboost(x, y, 40)
    wrong = (model.margins(x) * y <= 0).double().mean(1)
    bound = torch.tensor([2 * math.sqrt(e * (1 - e)) for e in model.errors], dtype=torch.float64).cumprod(0)
    assert (wrong <= bound).all()
    assert (bound[1:] < bound[:-1]).all()
    assert wrong[-1] < wrong[0] / 2
    held = load_breast_cancer(return_X_y=True)
    test_x, test_y = torch.from_numpy(held[0][200:, :6]), torch.from_numpy(2.0 * held[1][200:] - 1)
    assert (model(test_x) == test_y).double().mean() > 0.85


def test_best_stump_is_the_best_of_all() -> None:
    """Against trying every feature, threshold and sign; with ties among the values."""
    random = torch.Generator().manual_seed(0)
    for _ in range(20):
        x = torch.randint(4, (9, 3), generator=random).double()
        y = 2.0 * torch.randint(2, (9,), generator=random).double() - 1
        w = torch.rand(9, generator=random).double()
        every = [Stump(j, c + 0.5, s) for j in range(3) for c in range(-1, 4) for s in (-1, 1)]
        errors = [float(w[h(x) != y].sum()) for h in every]
        found = best_stump(x, y, w)
        assert float(w[found(x) != y].sum()) == pytest.approx(min(errors))


def test_a_perfect_learner_stands_alone() -> None:
    x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([-1.0, 1.0, 1.0])
    model = adaboost(x, y, 5)
    assert len(model.learners) == 1
    assert torch.equal(model(x), y)
    close(reweigh(torch.tensor([0.5, 0.5]), math.log(2), torch.ones(2), torch.tensor([1.0, -1.0])), [0.2, 0.8])
    with pytest.raises(Mistake, match="-1 and \\+1"):
        adaboost(x, torch.tensor([0.0, 1.0, 1.0]), 5)


@pytest.mark.parametrize("depth", [1, 3])
def test_regression_is_scikit_learns(depth: int) -> None:
    """λ = 0: trees on residuals, whose leaves are mean residuals."""
    x, y = diabetes()
    ours = GradientBoosting(rounds=10, depth=depth, rate=0.3, lam=0.0).regress(x, y)
    theirs = GradientBoostingRegressor(n_estimators=10, max_depth=depth, learning_rate=0.3, random_state=0).fit(
        x.numpy(), y.numpy()
    )
    close(ours(x), theirs.predict(x.numpy()), loosen=1e3)  # its trees hold features in float32
    for stage, expected in zip(ours.stages(x)[1:], theirs.staged_predict(x.numpy()), strict=True):
        close(stage, expected, loosen=1e3)


@pytest.mark.system("boosting", "residuals")
def test_one_round_is_a_tree_on_the_residuals() -> None:
    x, y = diabetes()
    model = GradientBoosting(rounds=1, depth=2, rate=1.0, lam=0.0).regress(x, y)
    tree = DecisionTreeRegressor(max_depth=2, random_state=0).fit(x.numpy(), (y - y.mean()).numpy())
    close(model(x) - y.mean(), tree.predict(x.numpy()), loosen=1e3)


def binned() -> tuple[Tensor, Tensor]:
    """Few distinct values, so that histograms lose nothing; enough examples that no two splits gain the same."""
    random = torch.Generator().manual_seed(0)
    x = torch.randint(40, (800, 4), generator=random).double()
    z = 0.1 * (x[:, 0] - 20) + 0.01 * (x[:, 1] - 20) * (x[:, 2] - 20)
    return x, torch.bernoulli(z.sigmoid(), generator=random)


SAME = {"max_iter": 8, "max_depth": 2, "learning_rate": 0.3, "l2_regularization": 1.5, "min_samples_leaf": 1}


@pytest.mark.system("boosting", "second-order")
def test_second_order_leaves_are_scikit_learns() -> None:
    """The histogram learner has the same gain and leaf −G/(H + λ), in float32."""
    x, y = binned()
    ours = GradientBoosting(rounds=8, depth=2, rate=0.3, lam=1.5)
    theirs = HistGradientBoostingClassifier(**SAME, max_leaf_nodes=None, early_stopping=False).fit(x, y)
    difference = ours.classify(x, y)(x) - torch.from_numpy(theirs.decision_function(x))
    assert difference.abs().max() < 1e-4
    target = x[:, 0] * 0.1 + y
    theirs = HistGradientBoostingRegressor(**SAME, max_leaf_nodes=None, early_stopping=False).fit(x, target)
    assert (ours.regress(x, target)(x) - torch.from_numpy(theirs.predict(x))).abs().max() < 1e-4


@pytest.mark.system("boosting", "second-order")
def test_training_loss_falls_at_every_round() -> None:
    x, y = diabetes()
    stages = GradientBoosting(rounds=30, depth=2).regress(x, y).stages(x)
    losses = (stages - y).square().mean(1)
    assert (losses[1:] < losses[:-1]).all()
    x, y = cancer()
    y = (y + 1) / 2
    model = GradientBoosting(rounds=30, depth=2).classify(x, y)
    losses = F.binary_cross_entropy_with_logits(model.stages(x), y.expand(31, -1), reduction="none").mean(1)
    assert (losses[1:] < losses[:-1]).all()
    assert ((model(x) > 0) == (y > 0.5)).double().mean() > 0.95


def test_leaves_gain_and_shrinkage() -> None:
    """λ shrinks a leaf, γ forbids a split that gains less, both as in the equation."""
    g, h = torch.tensor([1.0, 2.0, -1.0, -4.0]).double(), torch.ones(4).double()
    assert leaf_value(g, h, 0.0) == 0.5
    assert leaf_value(g, h, 4.0) == 0.25
    assert leaf_value(g, torch.zeros(4), 0.0) == 0.0
    x = torch.arange(4.0).double()[:, None]
    best = 0.5 * (3**2 / 3 + 5**2 / 3 - 2**2 / 5)  # λ = 1, cut in the middle
    split = GradientBoosting(lam=1.0, gamma=best - 1e-9).tree(x, g, h, 1)
    assert split.branches is not None
    assert (split.feature, split.threshold) == (0, 1.5)
    assert [b.value for b in split.branches] == [-1.0, pytest.approx(5 / 3)]
    assert GradientBoosting(lam=1.0, gamma=best + 1e-9).tree(x, g, h, 1) == Tree(0.4)
    assert GradientBoosting(lam=1.0).tree(torch.ones(4, 1).double(), g, h, 3).leaves == 1  # nothing to part
    assert GradientBoosting(lam=0.0).tree(x, g, h, 3).leaves == 4


def test_bad_values_are_refused() -> None:
    x = torch.arange(3.0)[:, None]
    for y in (torch.ones(3), torch.tensor([0.0, 2.0, 1.0])):
        with pytest.raises(Mistake, match="0 and 1"):
            GradientBoosting().classify(x, y)
    with pytest.raises(Mistake, match="rate"):
        GradientBoosting(rate=0.0)
