"""Cache sizes against the caches that models make, and how groups are dealt out."""

from __future__ import annotations

import pytest
import torch

from descend.models import deepseek_v2, llama, palm
from descend.ops.attention.dot_product import causal_mask
from descend.theory.cache import (
    cache_numbers,
    cached_products,
    causal_products,
    equivalent_groups,
    full_products,
    group_of,
    latent_cache_numbers,
    per_device,
)
from descend.theory.experts import active_fraction, expert_fraction, relative_cost


def kept(decoder: object) -> int:
    decoder.start(torch.tensor([[1]]), torch.zeros(1, dtype=torch.long), 1)  # type: ignore[attr-defined]
    return int(decoder.cache.kv.numel())  # type: ignore[attr-defined]


@pytest.mark.system("grouped-query-attention", "cache")
@pytest.mark.system("multi-head-latent-attention", "cache")
@pytest.mark.system("multi-query-attention", "cache")
@pytest.mark.system("grouped-query-attention")
@pytest.mark.system("multi-query-attention")
@pytest.mark.system("multi-head-latent-attention")
def test_a_token_leaves_what_the_formula_says() -> None:
    assert kept(llama.Llama(llama.TINY).decoder()) == cache_numbers(2, 8, 2)
    assert kept(palm.Palm(palm.TINY).decoder()) == cache_numbers(1, 8, 2)
    assert kept(deepseek_v2.DeepseekV2(deepseek_v2.TINY).decoder()) == latent_cache_numbers(16, 4, 2)
    assert equivalent_groups(512, 64, 128) == 2.25


@pytest.mark.system("grouped-query-attention", "between", "cache")
@pytest.mark.system("grouped-query-attention")
def test_groups() -> None:
    assert [group_of(h, 6, 3) for h in range(6)] == [0, 0, 1, 1, 2, 2]
    assert per_device(96, 8, 8) == per_device(12, 1, 8) == 12
    assert per_device(96, 8, 4) == 24
    with pytest.raises(ValueError, match="8 heads cannot share 3"):
        group_of(0, 8, 3)


@pytest.mark.system("kv-cache")
@pytest.mark.system("kv-cache", "cost")
@pytest.mark.parametrize("tokens", [1, 2, 7, 50])
def test_products_are_those_of_the_masks(tokens: int) -> None:
    """Counted in the masks themselves, for every length up to the last."""
    masks = [causal_mask(t) for t in range(1, tokens + 1)]
    assert cached_products(tokens) == sum(int(mask[-1].sum()) for mask in masks)
    assert causal_products(tokens) == sum(int(mask.sum()) for mask in masks)
    assert full_products(tokens) == sum(mask.numel() for mask in masks)


@pytest.mark.system("mixture-of-experts", "counts")
@pytest.mark.system("mixture-of-experts")
def test_fractions() -> None:
    assert expert_fraction(2, 8) == 0.25 < active_fraction(12.88, 46.7)
    assert relative_cost(26, 13) == 2
