"""Costs of word vectors against torch's expressions, closed-form gradients, and the optimum of negative sampling."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from descend.errors import Mistake
from descend.losses.word_vectors import (
    dot_products,
    glove,
    glove_weight,
    log_ratio,
    negative_sampling,
    noise_weights,
    shifted_pmi,
)
from tests.close import close


@pytest.mark.system("skip-gram-negative-sampling")
@pytest.mark.system("skip-gram-negative-sampling", "loss")
def test_negative_sampling_is_binary_cross_entropy_summed_over_the_words() -> None:
    scores = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([1.0, 0, 0, 0], dtype=torch.float64).expand(5, 4)
    ours = negative_sampling(scores[:, 0], scores[:, 1:])
    close(ours, binary_cross_entropy_with_logits(scores, target, reduction="none").sum(1))
    assert torch.autograd.gradcheck(lambda s: negative_sampling(s[:, 0], s[:, 1:]), scores)
    extreme = negative_sampling(torch.tensor([1e4, -1e4]), torch.tensor([[-1e4], [1e4]]))
    close(extreme, torch.tensor([0.0, 2e4]))
    assert dot_products(5) == 6


@pytest.mark.system("skip-gram-negative-sampling")
@pytest.mark.system("skip-gram-negative-sampling", "optimum")
def test_the_optimum_is_shifted_pmi_and_not_that_of_the_softmax() -> None:
    torch.manual_seed(0)
    joint = torch.rand(4, 4, dtype=torch.float64)
    joint, k = joint / joint.sum(), 3
    noise = joint.sum(0)
    scores = torch.zeros(4, 4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([scores], max_iter=200, tolerance_grad=1e-12, tolerance_change=1e-16)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        positive, negative = (
            negative_sampling(scores, scores.new_zeros(4, 4, 0)),
            -torch.nn.functional.logsigmoid(-scores),
        )
        loss = (joint * positive).sum() + k * (joint.sum(1, keepdim=True) * noise * negative).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    close(scores, shifted_pmi(joint, k), loosen=1e4)  # a numerical optimum
    softmax = (joint / joint.sum(1, keepdim=True)).log()
    assert (scores.softmax(1).log() - softmax).abs().max() > 0.05


@pytest.mark.system("glove")
@pytest.mark.system("glove", "published")
def test_glove_weights_and_values() -> None:
    x = torch.tensor([1.0, 100.0, 1000.0], dtype=torch.float64)
    close(glove_weight(x), torch.tensor([0.01**0.75, 1, 1], dtype=torch.float64))
    score = torch.randn(3, dtype=torch.float64, requires_grad=True)
    close(glove(score, x), glove_weight(x) * (score - x.log()) ** 2)
    assert torch.autograd.gradcheck(lambda s: glove(s, x), score)
    close(log_ratio(score, x), (score - x) ** 2)
    with pytest.raises(Mistake, match="record 1: count -2 is negative"):
        glove(torch.zeros(2), torch.tensor([1.0, -2.0]))
    with pytest.raises(Mistake, match="scores and counts differ in shape"):
        glove(torch.zeros(2), torch.ones(3))


@pytest.mark.system("skip-gram-negative-sampling")
@pytest.mark.system("skip-gram-negative-sampling", "noise")
def test_noise_is_uniform_or_follows_frequency() -> None:
    counts = torch.tensor([0, 1, 16])
    close(noise_weights(counts, 0.0), torch.tensor([0, 0.5, 0.5], dtype=torch.float64))
    close(noise_weights(counts, 0.75), torch.tensor([0, 1 / 9, 8 / 9], dtype=torch.float64))
    assert math.isclose(float(noise_weights(counts, 1.0)[2]), 16 / 17)
