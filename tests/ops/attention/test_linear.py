"""Linear attention: the quadratic form, the recurrent form, and what it is not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.ops.attention.dot_product import attention, causal_mask
from descend.ops.attention.linear import elu_plus_one, kernel_attention, recurrent_attention
from tests.close import close

SLUG = "linear-attention"


def features(n: int, t: int = 9, m: int = 5, seed: int = 0) -> list[Tensor]:
    x = torch.randn(n, 2, t, m, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return [elu_plus_one(part) for part in x]


@pytest.mark.system(SLUG, "phi")
@pytest.mark.system(SLUG)
def test_phi() -> None:
    x = torch.tensor([-30.0, -1.0, 0.0, 2.0], dtype=torch.float64)
    close(elu_plus_one(x), torch.where(x > 0, x + 1, x.exp()))
    assert (elu_plus_one(x) > 0).all()


@pytest.mark.system(SLUG, "quadratic")
@pytest.mark.system(SLUG)
def test_weights_are_a_distribution_of_kernel_values() -> None:
    q, k, v = features(3)
    y, a = kernel_attention(q, k, v)
    close(a.sum(-1), torch.ones(2, 9, dtype=torch.float64))
    close(a[0, 3, 4] / a[0, 3, 5], (q[0, 3] @ k[0, 4]) / (q[0, 3] @ k[0, 5]))
    close(y[1, 2], (a[1, 2][:, None] * v[1]).sum(0))


@pytest.mark.system(SLUG, "causal")
@pytest.mark.system(SLUG)
def test_recurrent_form_equals_the_masked_form() -> None:
    q, k, v = features(3)
    y, a = kernel_attention(q, k, v, causal_mask(9))
    assert not a.triu(1).any()
    close(recurrent_attention(q, k, v), y)


@pytest.mark.system(SLUG, "not-softmax")
@pytest.mark.system(SLUG)
def test_it_is_not_softmax_attention() -> None:
    x = torch.randn(2, 9, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    ours = kernel_attention(elu_plus_one(x), elu_plus_one(x), x)[0]
    assert (ours - attention(x, x, x)[0]).abs().max() > 0.1
