"""Routing: gates, groups, noise, capacity."""

from __future__ import annotations

import pytest
import torch

from descend.ops.routing import best_groups, capacity, gates, noisy, top_k, top_k_renormalised, within_capacity
from tests.close import close


@pytest.mark.system("mixture-of-experts", "two-gates")
@pytest.mark.system("mixture-of-experts")
def test_renormalised_is_the_softmax_of_the_kept_logits() -> None:
    z = torch.randn(6, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    weight, index = top_k_renormalised(gates(z), 3)
    close(weight, z.gather(1, index).softmax(-1))
    plain, same = top_k(gates(z), 3)
    assert torch.equal(index, same)
    assert (plain.sum(-1) < 1).all()
    close(top_k(gates(z), 8)[0].sum(-1), torch.ones(6, dtype=torch.float64))


def test_gates_of_half_precision_are_single() -> None:
    assert gates(torch.zeros(2, 3, dtype=torch.bfloat16)).dtype == torch.float32


@pytest.mark.system("mixture-of-experts")
def test_groups() -> None:
    scores = torch.tensor([[0.1, 0.9, 0.5], [0.3, 0.2, 0.1]])
    assert best_groups(scores, 2, 2).tolist() == [[False, False, True, True, True, True], [True] * 4 + [False] * 2]


@pytest.mark.system("mixture-of-experts", "noise")
@pytest.mark.system("mixture-of-experts")
def test_noise_has_its_spread() -> None:
    torch.manual_seed(0)
    moved = noisy(torch.zeros(20000, 2), torch.tensor([0.0, 3.0]))
    expected = torch.nn.functional.softplus(torch.tensor([0.0, 3.0])).tolist()
    assert moved.std(0).tolist() == pytest.approx(expected, rel=0.01)
    assert noisy(torch.zeros(3, 2), torch.full((3, 2), -100.0)).abs().max() < 1e-6


@pytest.mark.system("switch-transformer", "capacity")
@pytest.mark.system("switch-transformer")
def test_capacity_keeps_the_first_tokens_of_each_expert() -> None:
    assert [capacity(10, 4, f) for f in (1.0, 1.25, 2.0)] == [3, 4, 5]
    index = torch.tensor([0, 1, 0, 0, 2, 1, 0])
    assert within_capacity(index, 3, 2).tolist() == [True, True, True, False, True, True, False]
    rows = torch.stack([index, index.flip(0)])  # each row has its own queue
    assert within_capacity(rows, 3, 1).sum(-1).tolist() == [3, 3]
