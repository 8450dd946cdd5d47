"""Margin losses: scikit-learn and torch, errata, gradients, extreme scores, bad labels."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import hinge_loss
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake
from descend.losses.classification import binary_cross_entropy
from descend.losses.margin import hinge, margin_ranking, multilabel_margin, soft_margin, target_rows
from tests.close import close


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def labels(*shape: int, seed: int = 9) -> Tensor:
    return torch.where(normal(*shape, seed=seed) > 0, 1.0, -1.0).double()


@pytest.mark.system("hinge-loss")
@pytest.mark.system("hinge-loss", "cases")
def test_hinge_is_scikit_learns() -> None:
    x, y = 2 * normal(40), labels(40)
    close(hinge(x, y).mean(), torch.tensor(hinge_loss(y.numpy(), x.numpy()), dtype=torch.float64))
    close(hinge(x, y, margin=0.0), (-y * x).clamp_min(0))
    far = hinge(torch.tensor([2.0, 0.4, -0.5]), torch.ones(3))
    close(far, torch.tensor([0.0, 0.6, 1.5]))  # beyond, inside, on the wrong side


@pytest.mark.system("hinge-loss")
@pytest.mark.system("hinge-loss", "classifier")
@pytest.mark.system("soft-margin-loss")
@pytest.mark.system("soft-margin-loss", "classifier")
def test_a_linear_classifier_separates_with_a_margin() -> None:
    """DLN-A.68, DLN-A.70: with ±1 labels on separable points; hinge ends at 0 exactly, the soft margin never does."""
    x = normal(60, 2)
    y = torch.where(x[:, 0] + 2 * x[:, 1] > 0, 1.0, -1.0).double()
    x = x + 0.3 * y[:, None] * torch.tensor([1.0, 2.0])
    for loss in (hinge, soft_margin):
        w = torch.zeros(2, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=1.0)
        for _ in range(400):
            optimizer.zero_grad()
            loss(x @ w, y).mean().backward()
            optimizer.step()
        assert ((x @ w) * y > 0).all()
        assert (loss(x @ w, y).sum() == 0) == (loss is hinge)


@pytest.mark.system("soft-margin-loss")
@pytest.mark.system("soft-margin-loss", "erratum", "as-bce")
def test_soft_margin_is_binary_cross_entropy_and_has_no_margin() -> None:
    """Erratum of DLN: loss and gradient are above 0 at y x = 1 and beyond; nothing happens at 1."""
    x, y = 3 * normal(20, seed=1), labels(20)
    close(soft_margin(x, y), binary_cross_entropy(x, (y + 1) / 2))
    close(soft_margin(x, y).mean(), F.soft_margin_loss(x, y))
    beyond = torch.tensor([1.0, 2.0, 5.0, 30.0], dtype=torch.float64, requires_grad=True)
    losses = soft_margin(beyond, torch.ones(4).double())
    assert (losses > 0).all()
    assert (torch.autograd.grad(losses.sum(), beyond)[0] < 0).all()
    assert hinge(beyond.detach(), torch.ones(4).double()).sum() == 0


@pytest.mark.system("margin-ranking-loss")
@pytest.mark.system("margin-ranking-loss", "ranking")
@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_ranking_is_torchs_and_orders_scores(margin: float) -> None:
    x1, x2, y = normal(12), normal(12, seed=2), labels(12)
    close(margin_ranking(x1, x2, y, margin).mean(), F.margin_ranking_loss(x1, x2, y, margin))
    close(margin_ranking(x1, x2, y, margin), margin_ranking(x2, x1, -y, margin))
    scores = torch.zeros(4, dtype=torch.float64, requires_grad=True)  # learn the order 0 < 1 < 2 < 3 from its pairs
    first, second = torch.tensor([1, 2, 3, 2, 3, 3]), torch.tensor([0, 0, 0, 1, 1, 2])
    optimizer = torch.optim.SGD([scores], lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        margin_ranking(scores[first], scores[second], torch.ones(6).double(), 0.5).sum().backward()
        optimizer.step()
    assert (scores.diff() > 0.3).all()


def by_loops(x: Tensor, targets: list[int]) -> float:
    others = [i for i in range(len(x)) if i not in targets]
    return sum(max(0.0, 1 - float(x[j] - x[i])) for j in targets for i in others) / len(x)


@pytest.mark.system("multilabel-margin-loss")
@pytest.mark.system("multilabel-margin-loss", "non-targets", "ended-list")
@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.lists(st.sets(st.integers(0, 4), max_size=5), min_size=1, max_size=4), st.integers(0, 10))
def test_multilabel_is_the_double_sum_over_non_targets(sets: list[set[int]], seed: int) -> None:
    """Erratum of DLN: i runs over the NON-targets; any number of targets, none and all included."""
    lists, x = [sorted(s, reverse=True) for s in sets], normal(len(sets), 5, seed=seed)
    known = torch.tensor([by_loops(row, targets) for row, targets in zip(x, lists, strict=True)], dtype=torch.float64)
    losses = multilabel_margin(x, target_rows(lists, 5))
    close(losses + 1, known + 1)
    again = multilabel_margin(x[None], target_rows(lists, 5)[None])
    assert again.shape == (1, len(lists))
    close(again[0] + 1, known + 1)


@pytest.mark.system("multilabel-margin-loss")
@pytest.mark.system("multilabel-margin-loss", "ended-list")
def test_what_follows_the_end_of_a_row_is_no_target() -> None:
    """DLN-MultiLabelMargin: 0.85, not the 1.85 of a sum over all classes."""
    x = torch.tensor([0.1, 0.2, 0.4, 0.8], dtype=torch.float64)
    close(multilabel_margin(x, torch.tensor([3, 0, -1, 1])), torch.tensor(0.85, dtype=torch.float64))
    assert target_rows([[3, 0], []], 4).tolist() == [[3, 0, -1, -1], [-1, -1, -1, -1]]


@pytest.mark.system("hinge-loss")
@pytest.mark.system("soft-margin-loss")
@pytest.mark.system("margin-ranking-loss")
@pytest.mark.system("multilabel-margin-loss")
def test_gradcheck_and_extreme_scores() -> None:
    x, y = normal(4, 3, seed=3).requires_grad_(), labels(4, 3)
    rows = target_rows([[0], [1, 2], [2], []], 3)
    other = normal(4, 3, seed=4)
    assert torch.autograd.gradcheck(lambda x: hinge(x, y), x)
    assert torch.autograd.gradcheck(lambda x: soft_margin(x, y), x)
    assert torch.autograd.gradcheck(lambda x: margin_ranking(x, other, y, 0.5), x)
    assert torch.autograd.gradcheck(lambda x: multilabel_margin(x, rows), x)
    far = torch.tensor([1e4, -1e4, 0.0], requires_grad=True)
    one = torch.ones(3)
    for losses in (
        hinge(far, one),
        soft_margin(far, one),
        soft_margin(far, -one),
        margin_ranking(far, -far.detach(), one),
        multilabel_margin(far, torch.tensor([1, -1, 0])),
    ):
        assert losses.isfinite().all()
        assert torch.autograd.grad(losses.sum(), far)[0].isfinite().all()
    close(soft_margin(far, one), torch.tensor([0.0, 1e4, 0.6931472]))
    assert F.soft_margin_loss(far, one).item() == float("inf")  # why it is not used


@pytest.mark.system("hinge-loss")
@pytest.mark.system("soft-margin-loss")
@pytest.mark.system("margin-ranking-loss")
@pytest.mark.system("multilabel-margin-loss")
def test_bad_labels_are_named() -> None:
    """0 and 1 where −1 and 1 are meant is the usual mistake; torch computes on."""
    x = torch.zeros(3)
    zero = torch.tensor([1.0, 0.0, -1.0])
    for call in (lambda: hinge(x, zero), lambda: soft_margin(x, zero), lambda: margin_ranking(x, x, zero)):
        with pytest.raises(Mistake, match="record 1: label 0 is neither -1 nor 1"):
            call()
    with pytest.raises(Mistake, match=r"scores and labels differ in shape: \(3,\) and \(3, 1\)"):
        hinge(x, zero[:, None])
    with pytest.raises(Mistake, match="record 0, 1: target 3 is not one of the classes 0 to 2"):
        multilabel_margin(x[None], torch.tensor([[1, 3, -1]]))
    for targets in ([0, 0], [3], [-1]):
        with pytest.raises(Mistake, match=r"record 1: targets \["):
            target_rows([[0], targets], 3)
