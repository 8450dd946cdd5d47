"""Batches: unbiased, with variance as 1/B, with and without replacement."""

from __future__ import annotations

from itertools import combinations, islice, product

import pytest
import torch

from descend.errors import Mistake
from descend.optim.batches import (
    batch_gradient,
    batch_sum,
    draw_balanced,
    example_gradients,
    scaled_rate,
    variance_with_replacement,
    variance_without_replacement,
    with_replacement,
    without_replacement,
)
from tests.close import close

SLUG = "stochastic-and-minibatch-gd"


def gradients(m: int = 6) -> torch.Tensor:
    random = torch.Generator().manual_seed(0)
    x, y = (torch.randn(m, *shape, generator=random, dtype=torch.float64) for shape in ((3,), ()))
    return example_gradients(lambda t: (x @ t - y) ** 2, torch.ones(3, dtype=torch.float64))


@pytest.mark.system("stochastic-and-minibatch-gd", "unbiased")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("b", [1, 2, 3])
def test_over_all_batches_the_mean_is_the_full_gradient_and_the_variance_the_closed_form(b: int) -> None:
    each = gradients()
    drawn = torch.stack([batch_gradient(each, torch.tensor(i)) for i in product(range(6), repeat=b)])
    close(drawn.mean(0), each.mean(0))
    close(drawn.var(0, correction=0), variance_with_replacement(each, b))
    epochs = torch.stack([batch_gradient(each, torch.tensor(i)) for i in combinations(range(6), b)])
    close(epochs.mean(0), each.mean(0))
    close(epochs.var(0, correction=0), variance_without_replacement(each, b))
    close(variance_with_replacement(each, b) * b, variance_with_replacement(each, 1))


@pytest.mark.system("stochastic-and-minibatch-gd", "reductions")
@pytest.mark.system(SLUG)
def test_the_sum_is_the_mean_times_the_batch() -> None:
    each, batch = gradients(), torch.tensor([0, 2, 5])
    close(batch_sum(each, batch), 3 * batch_gradient(each, batch))
    assert not variance_without_replacement(each, 6).any()
    assert scaled_rate(0.1, 256, 64) == pytest.approx(0.4)


@pytest.mark.system("stochastic-and-minibatch-gd", "redundancy")
@pytest.mark.system(SLUG)
def test_redundant_data() -> None:
    """DLN-A.13: of two identical halves one is enough."""
    each = gradients().repeat(2, 1)
    close(batch_gradient(each, torch.arange(6)), each.mean(0))


@pytest.mark.system("stochastic-and-minibatch-gd", "samplers")
@pytest.mark.system(SLUG)
def test_samplers() -> None:
    random = torch.Generator().manual_seed(0)
    epoch = torch.cat(list(islice(without_replacement(10, 3, random), 3)))
    assert len(set(epoch.tolist())) == 9
    drawn = torch.cat(list(islice(with_replacement(10, 5, random), 400)))
    counts = drawn.bincount(minlength=10)
    assert (counts - 200).abs().max() < 4 * 14  # binomial, σ = 13.4
    labels = torch.tensor([0] * 90 + [1] * 10)
    classes = labels[torch.cat(list(islice(draw_balanced(labels, 20, random), 50)))]
    assert abs(classes.double().mean() - 0.5) < 4 * 0.016
    with pytest.raises(Mistake, match="1 to 10"):
        next(without_replacement(10, 11, random))


@pytest.mark.system("stochastic-and-minibatch-gd", "oscillation")
@pytest.mark.system(SLUG)
def test_a_constant_rate_bounces_around_the_minimum_less_for_larger_batches() -> None:
    """DLN-A.12 on the mean of numbers: L_i = ½ (θ − x_i)². The variance goes with 1/B."""
    random = torch.Generator().manual_seed(1)
    x = torch.randn(64, generator=random, dtype=torch.float64)
    spread = {}
    for b in (1, 16):
        theta, seen = torch.zeros((), dtype=torch.float64), []
        for batch in islice(with_replacement(64, b, random), 1500):
            theta = theta - 0.2 * (theta - x[batch]).mean()
            seen.append(theta)
        spread[b] = torch.stack(seen[100:]).var()
    assert 10 < spread[1] / spread[16] < 25
