"""The losses of pre-training against torch, their closed gradients, and no loss where nothing is masked."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from descend.losses.masked import (
    masked_lm_gradients,
    masked_lm_loss,
    masked_lm_sum,
    mean_or_zero,
    next_sentence_losses,
    next_sentence_losses_one_logit,
)
from tests.close import close


def case() -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 6, 7, generator=random, dtype=torch.float64)
    return logits, torch.randint(7, (3, 6), generator=random), torch.rand(3, 6, generator=random) < 0.4


@pytest.mark.system("mlm")
@pytest.mark.system("mlm", "reductions")
def test_equals_cross_entropy_with_the_others_ignored() -> None:
    logits, y, at = case()
    labels = torch.where(at, y, -100)
    for ours, how in ((masked_lm_loss, "mean"), (masked_lm_sum, "sum")):
        close(ours(logits, y, at), F.cross_entropy(logits.transpose(1, 2), labels, reduction=how))
    close(masked_lm_sum(logits, y, at), masked_lm_loss(logits, y, at) * at.sum())
    logits.requires_grad_()
    masked_lm_loss(logits, y, at).backward()
    assert logits.grad is not None
    assert (logits.grad[~at] == 0).all()
    close(logits.grad[at], (logits.detach().softmax(-1) - F.one_hot(y, 7))[at] / at.sum())


@pytest.mark.system("mlm")
@pytest.mark.system("mlm", "nothing-chosen")
def test_nothing_masked_costs_nothing_and_moves_nothing() -> None:
    logits, y, at = case()
    logits.requires_grad_()
    loss = masked_lm_loss(logits, y, torch.zeros_like(at))
    loss.backward()
    assert loss == 0
    assert logits.grad is not None
    assert (logits.grad == 0).all()
    assert mean_or_zero(torch.tensor([2.0, 4.0])) == 3


@pytest.mark.system("mlm")
@pytest.mark.system("mlm", "gradients")
def test_closed_gradients() -> None:
    """MF 34.4.3, with 1/|M| everywhere; autograd agrees, also where M is empty."""
    _, y, at = case()
    random = torch.Generator().manual_seed(1)
    h, w, b = (torch.randn(s, generator=random, dtype=torch.float64) for s in ((6, 4), (7, 4), (7,)))
    for chosen in (at[0], torch.zeros(6, dtype=torch.bool)):
        given = [v.clone().requires_grad_() for v in (h, w, b)]
        masked_lm_loss((given[0] @ given[1].T + given[2])[None], y[:1], chosen[None]).backward()
        found = masked_lm_gradients(h, w, b, y[0], chosen)
        for ours, theirs in zip((found.h, found.w, found.b), given, strict=True):
            assert theirs.grad is not None
            close(ours, theirs.grad)


@pytest.mark.system("mlm")
@pytest.mark.system("next-sentence-prediction")
def test_gradcheck() -> None:
    logits, y, at = case()
    assert torch.autograd.gradcheck(lambda z: masked_lm_loss(z, y, at), (logits.requires_grad_(),))
    pairs = torch.randn(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: next_sentence_losses(z, torch.tensor([0, 1, 1, 0])), (pairs,))


@pytest.mark.system("next-sentence-prediction")
@pytest.mark.system("next-sentence-prediction", "one-logit", "two-classes")
def test_two_classes_are_one_logit() -> None:
    z = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([0, 1, 0, 0, 1])
    u = (z[:, 0] - z[:, 1]).requires_grad_()
    one = next_sentence_losses_one_logit(u, 1 - y)
    close(next_sentence_losses(z, y), one)
    close(one, F.binary_cross_entropy_with_logits(u, (1 - y).double(), reduction="none"))
    one.sum().backward()
    assert u.grad is not None
    close(u.grad, u.detach().sigmoid() - (1 - y))
    close(next_sentence_losses(torch.zeros(1, 2), torch.tensor([1])), torch.tensor([math.log(2)]))
