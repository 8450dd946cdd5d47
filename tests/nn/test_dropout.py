"""Dropout in its two forms: training and test, expectation, all subnetworks."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from descend.nn.dropout import (
    PlainDropout,
    all_masks,
    drop,
    drop_variance,
    dropout,
    geometric_mean,
    inverted_drop,
    keeping,
    mask_probabilities,
)
from descend.ops.attention.dot_product import attention
from tests.close import close

pytestmark = pytest.mark.system("dropout")
N = 200_000


def test_the_two_lines_are_torchs_dropout() -> None:
    h = torch.randn(50, 20, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(1)
    ours = dropout(h, 0.3)
    torch.manual_seed(1)
    close(ours, F.dropout(h, 0.3))


@pytest.mark.system("dropout", "two-forms")
def test_training_drops_and_test_scales() -> None:
    torch.manual_seed(0)
    layer, h = PlainDropout(0.3), torch.full((N,), 2.0)
    out = layer(h)
    assert set(out.unique().tolist()) == {0.0, 2.0}  # no rescaling in training
    assert abs((out == 0).double().mean() - 0.3) < 5 * (0.3 * 0.7 / N) ** 0.5
    assert not torch.equal(layer(h), out)  # a new mask at every presentation
    layer.eval()
    assert torch.equal(layer(h), 0.7 * h)
    assert torch.equal(layer(h), layer(h))


def test_each_example_has_its_own_mask() -> None:
    torch.manual_seed(0)
    rows = PlainDropout(0.5)(torch.ones(20, 64))
    assert len(rows.unique(dim=0)) == 20


@pytest.mark.system("dropout", "two-forms")
def test_inverted_is_torchs() -> None:
    """For the mask that torch drew: 1/(1 − p) times the plain form, and nothing at test."""
    torch.manual_seed(1)
    h = torch.randn(500, dtype=torch.float64) + 5
    theirs = F.dropout(h, 0.2, training=True)
    m = (theirs != 0).double()
    close(inverted_drop(h, m, 0.2), theirs)
    close(inverted_drop(h, m, 0.2), PlainDropout(0.2)(h, m) / 0.8)
    assert torch.equal(nn.Dropout(0.2).eval()(h), h)


@pytest.mark.system("dropout", "keep-or-drop")
def test_keep_and_drop_are_two_names() -> None:
    """DLN's p keeps: 0.8 for inputs. Scaling the outgoing weights is scaling the activity."""
    layer, a, w = keeping(0.8), torch.randn(5, dtype=torch.float64), torch.randn(3, 5, dtype=torch.float64)
    assert layer.p == pytest.approx(0.2)
    close(F.linear(layer.eval()(a), w), F.linear(a, 0.8 * w))
    torch.manual_seed(0)
    assert abs(layer.train()(torch.ones(N)).mean() - 0.8) < 5 * (0.16 / N) ** 0.5


@pytest.mark.system("dropout", "expectation")
@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 0.9])
def test_expectation_and_variance_over_all_masks(p: float) -> None:
    h = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    masks = all_masks(4)
    weight = mask_probabilities(masks, 1 - p)
    assert len(masks.unique(dim=0)) == 16
    close(weight.sum(), torch.tensor(1.0, dtype=torch.float64))
    close(weight @ drop(h, masks), PlainDropout(p).eval()(h))
    inverted = inverted_drop(h, masks, p)
    close(weight @ inverted, h)
    close(weight @ (inverted - h).square() + 1, drop_variance(h, p) + 1)


def test_gradient_flows_through_what_is_kept() -> None:
    h = torch.randn(4, dtype=torch.float64, requires_grad=True)
    m = torch.tensor([1.0, 0.0, 1.0, 0.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda h: PlainDropout(0.5)(h, m), h)
    assert torch.autograd.gradcheck(lambda h: inverted_drop(h, m, 0.5), h)
    PlainDropout(0.5)(h, m).sum().backward()
    assert torch.equal(h.grad, m)


@pytest.mark.system("dropout", "ensemble")
def test_geometric_mean_is_exact_for_one_softmax_layer() -> None:
    """S940-DLD.34: 2ⁿ subnetworks, renormalised; the arithmetic mean is another number, and so is a deeper network."""
    torch.manual_seed(2)
    h, head = torch.randn(6, dtype=torch.float64), nn.Linear(6, 3).double()
    masks, p = all_masks(6), 0.4
    weight = mask_probabilities(masks, 1 - p)
    logits = head(inverted_drop(h, masks, p))
    close(geometric_mean(logits, weight), head(h).softmax(-1))
    close(geometric_mean(head(drop(h, masks)), weight), head(PlainDropout(p).eval()(h)).softmax(-1))
    assert (weight @ logits.softmax(-1) - head(h).softmax(-1)).abs().max() > 1e-3
    deep = lambda h: head(torch.tanh(h))
    error = (geometric_mean(deep(inverted_drop(h, masks, p)), weight) - deep(h).softmax(-1)).abs().max()
    assert 1e-4 < error < 0.2


def test_geometric_mean_by_hand() -> None:
    p = torch.tensor([[0.9, 0.1], [0.5, 0.5]], dtype=torch.float64)
    weight = torch.tensor([0.25, 0.75], dtype=torch.float64)
    product = (p ** weight[:, None]).prod(0)
    close(geometric_mean(p.log(), weight), product / product.sum())


@pytest.mark.system("dropout", "attention")
def test_dropped_attention_rows_do_not_sum_to_one() -> None:
    """VOM-B.65: at 0.1 after the softmax; the mean of the rows' sums is still 1."""
    torch.manual_seed(3)
    q, k = torch.randn(400, 8, 16), torch.randn(400, 8, 16)
    a = attention(q, k, k)[1]
    sums = nn.Dropout(0.1)(a).sum(-1)
    assert (sums - 1).abs().max() > 0.05
    assert abs(sums.mean() - 1) < 5 * sums.std() / sums.numel() ** 0.5
    assert torch.equal(nn.Dropout(0.1).eval()(a), a)


@pytest.mark.parametrize("p", [-0.1, 1.1])
def test_p_is_a_probability(p: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        PlainDropout(p)
