"""Relaxed categorical choices: torch's Gumbel-softmax, its limits, and the KL to uniform."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Categorical, RelaxedOneHotCategorical, kl_divergence

from descend.ops.relaxed_categorical import kl_to_uniform, relax
from tests.close import close


@pytest.mark.system("dall-e-1", "dvae")
def test_shares_are_the_probabilities() -> None:
    """A small temperature gives nearly one-hot choices, as often as softmax says; moments as torch's distribution."""
    logits = torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64)
    u = torch.rand(40_000, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    hard = relax(logits, u, 0.01)
    assert hard.amax(-1).mean() > 0.97
    assert (hard.argmax(-1).bincount() / 40_000 - logits.softmax(0)).abs().max() < 0.01
    torch.manual_seed(0)
    theirs = RelaxedOneHotCategorical(torch.tensor(0.7).double(), logits=logits).sample((40_000,))
    ours = relax(logits, u, 0.7)
    assert (ours.mean(0) - theirs.mean(0)).abs().max() < 0.01
    assert (ours.std(0) - theirs.std(0)).abs().max() < 0.01
    close(ours.sum(-1), torch.ones(40_000, dtype=torch.float64))
    assert relax(logits, torch.tensor([0.0, 1.0, 0.5], dtype=torch.float64), 0.1).isfinite().all()
    with pytest.raises(ValueError, match="above 0"):
        relax(logits, u, 0.0)


@pytest.mark.system("dall-e-1", "dvae")
def test_the_kl_to_uniform() -> None:
    logits = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    uniform = Categorical(logits=torch.zeros(4, 5, dtype=torch.float64))
    close(kl_to_uniform(logits), kl_divergence(Categorical(logits=logits), uniform))
    assert kl_to_uniform(torch.zeros(5)).abs() < 1e-6
    sure = torch.tensor([100.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    close(kl_to_uniform(sure), torch.tensor(math.log(4), dtype=torch.float64))


def test_gradients() -> None:
    logits = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    u = torch.rand(3, 4, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda a: (relax(a, u, 0.7), kl_to_uniform(a)), logits)
