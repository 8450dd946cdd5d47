"""Cache sizes against the caches that models make, and how groups are dealt out."""

from __future__ import annotations

import pytest
import torch

from descend.models import deepseek_v2, gpt2, llama, palm
from descend.ops.attention.dot_product import causal_mask
from descend.theory.cache import (
    MEGABYTE,
    CacheShape,
    cache_bytes,
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


def kept(decoder: object) -> float:
    """Numbers for a token, in the cache of a text of 16."""
    decoder.start(torch.tensor([[1]]), torch.zeros(1, dtype=torch.long), 16)  # type: ignore[attr-defined]
    return float(decoder.cache.kv.numel() / 16)  # type: ignore[attr-defined]


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


@pytest.mark.system("kv-cache-memory", "measured")
@pytest.mark.system("kv-cache-memory")
@pytest.mark.parametrize("rows", [1, 3])
def test_bytes_of_a_decoders_cache(rows: int) -> None:
    """The tensors themselves, for a text of 16 tokens in float32: grouped, multi-query and multi-head."""
    gpt, grouped, single = gpt2.TINY, llama.TINY, palm.TINY
    for model, shape in (
        (gpt2.GPT2(gpt), CacheShape(gpt.depth, gpt.heads, gpt.width // gpt.heads)),
        (llama.Llama(grouped), CacheShape(grouped.depth, grouped.heads, grouped.size, grouped.kv_heads)),
        (palm.Palm(single), CacheShape(single.depth, single.heads, 8, 1)),
    ):
        decoder = model.decoder()
        decoder.start(torch.ones(rows, 3, dtype=torch.long), torch.zeros(rows, dtype=torch.long), 16)
        assert decoder.cache.kv.nbytes == cache_bytes(shape, 16, rows, 4)


@pytest.mark.system("kv-cache-memory", "formulas", "reduction")
@pytest.mark.parametrize("heads", [12, 96])
def test_formulas(heads: int) -> None:
    full, single = CacheShape(7, heads, 64), CacheShape(7, heads, 64, 1)
    assert cache_bytes(full, 1024, 3) == 2 * 7 * 3 * heads * 1024 * 64 * 2
    assert cache_bytes(CacheShape(7, heads, 64, 6), 1024, 3) == 2 * 7 * 3 * 6 * 1024 * 64 * 2
    assert cache_bytes(full, 10) == heads * cache_bytes(single, 10)
    assert cache_bytes(full, 10, 1, 4) == 2 * cache_bytes(full, 10)


@pytest.mark.system("kv-cache-memory", "errata")
def test_the_books_table() -> None:
    """Groups of eight cannot share twelve heads; and XL has heads for a width of 3072."""
    with pytest.raises(ValueError, match="12 heads cannot share 8"):
        CacheShape(12, 12, 64, 8)
    assert cache_bytes(CacheShape(24, 24, 128), 1024) == 288 * MEGABYTE
    assert cache_bytes(CacheShape(24, 16, 128), 1024) == 192 * MEGABYTE


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
