"""Eckart-Young, against numpy's singular values and against other matrices of the same rank."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from descend.ops.low_rank import effective_rank, energy_share, nearest_of_rank, numeric_rank
from tests.close import close

DELTA = torch.randn(9, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.system("lora", "eckart-young")
@pytest.mark.parametrize("rank", [1, 3, 6, 7])
def test_the_error_of_the_nearest_matrix_is_the_tail_of_the_singular_values(rank: int) -> None:
    b, a = nearest_of_rank(DELTA, rank)
    values = np.linalg.svd(DELTA.numpy(), compute_uv=False)
    assert b.shape == (9, rank)
    assert a.shape == (rank, 7)
    assert numeric_rank(b @ a) == rank
    error = (DELTA - b @ a).square().sum()
    assert abs(error.item() - float((values[rank:] ** 2).sum())) < 1e-10
    close(energy_share(DELTA)[rank - 1], (values[:rank] ** 2).sum() / (values**2).sum())
    for _ in range(20):  # no other one of this rank is nearer
        other = (b + 0.1 * torch.randn_like(b)) @ (a + 0.1 * torch.randn_like(a))
        assert (DELTA - other).square().sum() >= error - 1e-12


@pytest.mark.system("lora", "eckart-young")
def test_the_rank_of_the_whole_recovers_the_matrix() -> None:
    b, a = nearest_of_rank(DELTA, 7)
    close(b @ a, DELTA)


def test_the_effective_rank_counts_directions() -> None:
    low = torch.diag(torch.tensor([3.0, 1.0, 0.0, 0.0]))
    assert effective_rank(low, 0.89) == 1
    assert effective_rank(low, 0.91) == 2
    assert effective_rank(torch.eye(10), 0.9) == 9
    assert effective_rank(torch.zeros(3, 3)) == 1
    assert energy_share(torch.zeros(3, 3)).tolist() == [1, 1, 1]
