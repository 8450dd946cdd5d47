"""The adaptive softmax: torch's own, a distribution over all classes, cheaper than the full one."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from descend.errors import Mistake
from descend.losses.adaptive import AdaptiveSoftmax
from descend.losses.classification import cross_entropy
from tests.close import close

SLUG = "adaptive-log-softmax"


def pair() -> tuple[AdaptiveSoftmax, nn.AdaptiveLogSoftmaxWithLoss, torch.Tensor]:
    """Ours and torch's with the same weights, and inputs large enough to prefer different classes."""
    torch.manual_seed(0)
    ours = AdaptiveSoftmax(16, 60, [5, 20], ratio=2.0).double()
    theirs = nn.AdaptiveLogSoftmaxWithLoss(16, 60, [5, 20], div_value=2.0).double()
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs, 8 * torch.randn(40, 16, dtype=torch.float64)


@pytest.mark.system("adaptive-log-softmax", "api")
@pytest.mark.system(SLUG)
def test_is_torchs() -> None:
    ours, theirs, x = pair()
    y = torch.arange(40) * 7 % 60
    losses = ours(x, y)
    close(losses, -theirs(x, y).output)
    close(losses.mean(), theirs(x, y).loss)
    close(ours.log_prob(x), theirs.log_prob(x))
    close(losses, -ours.log_prob(x).gather(1, y[:, None]).squeeze(1))
    mine = torch.autograd.grad(losses.mean(), list(ours.parameters()))
    for a, b in zip(mine, torch.autograd.grad(theirs(x, y).loss, list(theirs.parameters())), strict=True):
        close(a, b)


@pytest.mark.system("adaptive-log-softmax", "api", "distribution")
@pytest.mark.system(SLUG)
def test_is_a_distribution_and_predicts_its_largest() -> None:
    ours, theirs, x = pair()
    close(ours.log_prob(x).exp().sum(-1), torch.ones(40, dtype=torch.float64))
    found = ours.predict(x)
    assert torch.equal(found, ours.log_prob(x).argmax(-1))
    assert torch.equal(found, theirs.predict(x))
    assert (found < 5).any()
    assert (found >= 5).any()
    assert torch.equal(ours.predict(x.view(4, 10, 16)), found.view(4, 10))


@pytest.mark.system("adaptive-log-softmax", "erratum")
@pytest.mark.system(SLUG)
def test_it_is_another_model_than_the_full_softmax() -> None:
    """Erratum of DLN: the values are not those of cross-entropy, unless each cluster has one class."""
    single = AdaptiveSoftmax(6, 5, [3, 4], ratio=1.0).double()
    x, y = torch.randn(8, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1)), torch.arange(8) % 5
    close(single(x, y), cross_entropy(single.head(x), y))
    ours, _, x = pair()
    logits = torch.cat([ours.head(x)[:, :5], *(tail(x) for tail in ours.tail)], -1)  # the same scores, one softmax
    assert not torch.allclose(ours.log_prob(x), logits.log_softmax(-1))


@pytest.mark.system("adaptive-log-softmax", "cheaper")
@pytest.mark.system(SLUG)
def test_it_costs_less_than_the_full_softmax() -> None:
    torch.manual_seed(1)
    small, full = AdaptiveSoftmax(64, 5000, [100, 1000]), nn.Linear(64, 5000, bias=False)
    assert sum(p.numel() for p in small.parameters()) == 64 * 102 + 16 * (64 + 900) + 4 * (64 + 4000)
    x, y = torch.randn(32, 64), (torch.rand(32) ** 4 * 5000).long()  # frequent classes are frequent
    with FlopCounterMode(display=False) as ours:
        small(x, y)
    with FlopCounterMode(display=False) as theirs:
        cross_entropy(full(x), y)
    assert 5 * ours.get_total_flops() < theirs.get_total_flops()


@pytest.mark.system(SLUG)
def test_gradcheck_shapes_and_extremes() -> None:
    ours, _, x = pair()
    few, y = x[:4].clone().requires_grad_(), torch.tensor([0, 6, 30, 59])
    assert torch.autograd.gradcheck(lambda x: ours(x, y), few)
    close(ours(x.view(2, 20, 16), torch.zeros(2, 20, dtype=torch.long)).flatten(), ours(x, torch.zeros(40).long()))
    far = (1e4 * x[:4]).requires_grad_()
    losses = ours(far, y)
    assert losses.isfinite().all()
    assert torch.autograd.grad(losses.sum(), far)[0].isfinite().all()


@pytest.mark.system(SLUG)
def test_bad_input_is_named() -> None:
    ours, _, x = pair()
    with pytest.raises(Mistake, match="record 1: label 60 is not one of the classes 0 to 59"):
        ours(x[:2], torch.tensor([0, 60]))
    with pytest.raises(Mistake, match=r"embeddings \(2, 16\) need labels \(2,\), not \(3,\)"):
        ours(x[:2], torch.zeros(3, dtype=torch.long))
    for cutoffs in ([], [0, 5], [20, 5], [5, 60]):
        with pytest.raises(Mistake, match="cutoffs"):
            AdaptiveSoftmax(16, 60, cutoffs)
    with pytest.raises(Mistake, match=r"ratio 8\.0: cluster 2"):
        AdaptiveSoftmax(16, 60, [5, 20], ratio=8.0)
