from __future__ import annotations

import pytest
import torch
from torch.distributions import Categorical, kl_divergence

from descend.metrics.policies import approximate_kl, clip_fraction, explained_variance
from tests.close import close


@pytest.mark.system("ppo")
def test_approximate_kl_is_unbiased_and_never_below_zero() -> None:
    torch.manual_seed(0)
    old, new = Categorical(logits=torch.tensor([0.3, -0.2, 0.1])), Categorical(logits=torch.tensor([0.5, 0.1, -0.3]))
    actions = old.sample((200_000,))
    log_ratio = new.log_prob(actions) - old.log_prob(actions)
    assert float(approximate_kl(log_ratio)) == pytest.approx(float(kl_divergence(old, new)), rel=0.02)
    assert all(float(approximate_kl(part)) >= 0 for part in log_ratio[:1000].split(10))
    assert approximate_kl(torch.zeros(5)) == 0


def test_clip_fraction_counts_both_sides() -> None:
    close(clip_fraction(torch.tensor([0.5, 0.81, 1.0, 1.19, 1.5]), 0.2), torch.tensor(0.4))


def test_explained_variance() -> None:
    g = torch.tensor([1.0, 2.0, 3.0, 6.0])
    close(explained_variance(g + 5, g), torch.tensor(1.0))  # a constant error is no variance
    close(explained_variance(torch.full((4,), 3.0), g), torch.tensor(0.0))
    close(explained_variance(-g, g), torch.tensor(-3.0))
    close(explained_variance(g, torch.ones(4)), torch.tensor(0.0))
