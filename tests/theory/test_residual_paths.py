"""Paths of a linear residual stack."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.theory.residual_paths import linear_stack, mean_path_length, paths, paths_by_length, sum_over_paths
from tests.close import close


def stack(n: int, d: int) -> tuple[list[torch.Tensor], torch.Tensor]:
    random = torch.Generator().manual_seed(n)
    return list(torch.randn(n, d, d, generator=random).double()), torch.randn(d, generator=random).double()


@pytest.mark.system("residual-stack-analysis")
@pytest.mark.system("residual-stack-analysis", "paths")
@settings(max_examples=10, derandomize=True, deadline=None)
@given(st.integers(1, 7), st.integers(1, 4))
def test_the_stack_is_the_sum_of_its_paths(n: int, d: int) -> None:
    """Against the product of (I + F_i), and with the binomial lengths."""
    blocks, x = stack(n, d)
    product = torch.linalg.multi_dot([*(torch.eye(d).double() + f for f in reversed(blocks)), x])
    close(sum_over_paths(blocks, x), product, loosen=100)  # up to 128 terms that cancel
    close(linear_stack(blocks, x), product)
    lengths = [len(passed) for passed, _ in paths(blocks, x)]
    assert [lengths.count(k) for k in range(n + 1)] == paths_by_length(n)
    assert sum(lengths) / len(lengths) == mean_path_length(n) == n / 2


@pytest.mark.system("residual-stack-analysis")
@pytest.mark.system("residual-stack-analysis", "deletion", "recurrence")
def test_deletion_and_tied_weights() -> None:
    """Without block 2 the paths that avoid it are left; tied weights are an unrolled recurrence, (I + F)ⁿ."""
    blocks, x = stack(5, 3)
    left = torch.stack([carried for passed, carried in paths(blocks, x) if 2 not in passed])
    assert len(left) == 2**4
    close(linear_stack(blocks[:2] + blocks[3:], x), left.sum(0))
    power = torch.linalg.matrix_power(torch.eye(3).double() + blocks[0], 6)
    close(linear_stack([blocks[0]] * 6, x), power @ x)
