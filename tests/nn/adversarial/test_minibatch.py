"""Minibatch discrimination against loops; equal and distant examples; a batch that has collapsed is seen."""

from __future__ import annotations

import pytest
import torch

from descend.nn.adversarial.minibatch import MinibatchDeviation, MinibatchDiscrimination, closeness
from tests.close import close

pytestmark = pytest.mark.system("minibatch-discrimination")


def make(dtype: torch.dtype = torch.float64) -> MinibatchDiscrimination:
    torch.manual_seed(0)
    return MinibatchDiscrimination(4, kernels=3, size=2).to(dtype)


@pytest.mark.system("minibatch-discrimination", "formula")
def test_against_loops() -> None:
    layer, f = make(), torch.randn(5, 4, dtype=torch.float64)
    m = torch.einsum("bd,dks->bks", f, layer.weight.view(4, 3, 2))
    expected = torch.zeros(5, 3, dtype=torch.float64)
    for i in range(5):
        for j in range(5):
            for k in range(3):
                if i != j:
                    expected[i, k] += torch.exp(-(m[i, k] - m[j, k]).abs().sum())
    found = layer(f)
    close(found[:, :4], f)
    close(found[:, 4:], expected)


@pytest.mark.system("minibatch-discrimination", "formula")
def test_gradcheck() -> None:
    layer = make()
    assert torch.autograd.gradcheck(layer, torch.randn(4, 4, dtype=torch.float64, requires_grad=True))


@pytest.mark.system("minibatch-discrimination", "identical")
def test_equal_examples_count_all_others() -> None:
    found = make()(torch.ones(6, 4, dtype=torch.float64))
    close(found[:, 4:], torch.full((6, 3), 5.0, dtype=torch.float64))


@pytest.mark.system("minibatch-discrimination", "distant")
def test_distant_examples_count_nothing() -> None:
    found = closeness(100 * torch.arange(6.0)[:, None, None].expand(6, 3, 2))
    assert found.abs().max() < 1e-6


def test_deviation_of_maps() -> None:
    x = torch.randn(6, 2, 3, 3)
    found = MinibatchDeviation()(x)
    close(found[:, :2], x)
    close(found[:, 2], x.std(dim=0, unbiased=False).mean().expand(6, 3, 3), loosen=10)
    assert MinibatchDeviation()(x[:1].expand(6, 2, 3, 3))[:, 2].max() < 1e-3  # a generator that repeats itself
