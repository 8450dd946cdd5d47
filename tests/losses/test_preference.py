"""Losses of comparisons against torch, trl, and their own identities."""

from __future__ import annotations

from itertools import combinations
from math import log

import pytest
import torch
from torch.nn import functional as F

from descend.losses.preference import dpo_loss, dpo_margin, pairwise_loss, ranking_loss, response_log_prob
from tests.close import close


def rewards(*shape: int) -> torch.Tensor:
    return 3 * torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.system("reward-model")
def test_the_pairwise_loss_is_a_log_sigmoid_that_cannot_overflow() -> None:
    good, bad = rewards(2, 50)
    close(pairwise_loss(good, bad), -F.logsigmoid(good - bad))
    close(
        pairwise_loss(good, bad),
        F.binary_cross_entropy_with_logits(good - bad, torch.ones(50).double(), reduction="none"),
    )
    far = pairwise_loss(torch.tensor([-1e4, 1e4]), torch.tensor([1e4, -1e4]))
    assert far.tolist() == [2e4, 0.0]


@pytest.mark.system("reward-model", "shift")
def test_a_constant_for_each_prompt_changes_nothing() -> None:
    good, bad = rewards(2, 50)
    shift = rewards(50)
    close(pairwise_loss(good + shift, bad + shift), pairwise_loss(good, bad))
    close(pairwise_loss(shift, shift), torch.full((50,), log(2.0), dtype=torch.float64))
    torch.autograd.gradcheck(pairwise_loss, (good.requires_grad_(), bad.requires_grad_()))


@pytest.mark.system("reward-model", "rankings")
def test_a_ranking_is_the_mean_over_its_pairs() -> None:
    r = rewards(6, 4)
    pairs = list(combinations(range(4), 2))
    assert len(pairs) == 6
    close(ranking_loss(r), torch.stack([-F.logsigmoid(r[:, i] - r[:, j]) for i, j in pairs]).mean(0))
    close(ranking_loss(r[:, :2]), pairwise_loss(r[:, 0], r[:, 1]))
    close(ranking_loss(r + rewards(6, 1)), ranking_loss(r))
    close(ranking_loss(torch.zeros(1, 5).double()), torch.tensor([log(2.0)], dtype=torch.float64))


@pytest.mark.system("dpo")
def test_only_the_difference_of_the_log_ratios_counts() -> None:
    chosen, rejected = rewards(2, 50)
    close(dpo_loss(chosen, rejected, 0.3), pairwise_loss(0.3 * chosen, 0.3 * rejected))
    close(dpo_loss(chosen - 2.0, rejected - 2.0, 0.3), dpo_loss(chosen, rejected, 0.3))  # Z(x) cancels
    close(dpo_margin(chosen, rejected, 0.3), 0.3 * (chosen - rejected))
    torch.autograd.gradcheck(lambda a, b: dpo_loss(a, b, 0.3), (chosen.requires_grad_(), rejected.requires_grad_()))


@pytest.mark.system("dpo", "sum-over-the-response")
def test_the_log_probability_is_summed_over_the_response_alone() -> None:
    tokens = torch.randint(7, (3, 6), generator=torch.Generator().manual_seed(0))
    written = torch.tensor([[0, 0, 1, 1, 0, 0], [0, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1]]).bool()
    logits = rewards(3, 5, 7)
    expected = []
    for row in range(3):
        places = [t for t in range(6) if written[row, t]]
        expected.append(sum(logits[row, t - 1].log_softmax(-1)[tokens[row, t]] for t in places))
    close(response_log_prob(logits, tokens, written), torch.stack(expected))  # type: ignore[arg-type]
    other = torch.where(written, tokens, 6 - tokens)  # what stands before and behind does not count
    close(response_log_prob(logits, other, written), response_log_prob(logits, tokens, written))
