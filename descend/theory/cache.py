"""What the cache of a decoder costs: numbers for a token, by the kind of attention.

    multi-head       2 n_h d_h l           grouped   2 n_g d_h l           multi-query   2 d_h l
    latent           (d_c + d_R) l         DeepSeek-V2: d_c = 4 d_h, d_R = d_h / 2, so 9/2 d_h l: 2.25 groups

In bytes, for b texts of s tokens whose numbers take 2 bytes each (float16), DLN's formulas:

    multi-head       2 l b n s h · 2          grouped   2 l b G s h · 2        multi-query   2 l b s h · 2

with l layers, n heads of h numbers and G groups. Its table of GPT-3's sizes follows them with MB = 2^20 and GB = 2^30
bytes. Errata: the column G = 8 has a row of 12 heads, which 8 groups cannot share (`cache_bytes` refuses it; the
formula gives 24 MB); the XL row, 24 heads of 128 in a width of 2048, is not of 1.3B parameters: 16 heads take 192 MB,
no 288.

Multi-query is smaller by the number of heads. With as many groups as devices, grouped queries cost each device what a
replicated multi-query cache would.

Query-key products to write T tokens, one after the other:

    with the cache    Σ t        = T (T+1) / 2             each new query meets the keys so far
    without, causal   Σ t(t+1)/2 = T (T+1) (T+2) / 6       all queries again, each meets the keys up to itself
    without, full     Σ t²       = T (T+1) (2T+1) / 6      all queries again, all keys; the mask is laid on afterwards

Systems: kv-cache, kv-cache-memory, multi-query-attention, grouped-query-attention, multi-head-latent-attention
"""

from __future__ import annotations

from dataclasses import dataclass


def cache_numbers(kv_heads: int, head_size: int, layers: int = 1) -> int:
    """2 g d_h l: keys and values of one token."""
    return 2 * kv_heads * head_size * layers


MEGABYTE = 2**20  # as DLN counts


@dataclass(frozen=True)
class CacheShape:
    """What a model keeps of a token: l layers, n heads of h numbers, their keys and values shared by G groups."""

    layers: int
    heads: int
    head_size: int
    groups: int = 0
    """0: as many as heads; 1: multi-query."""

    def __post_init__(self) -> None:
        group_of(0, self.heads, self.groups or self.heads)


def cache_bytes(shape: CacheShape, tokens: int, rows: int = 1, each: int = 2) -> int:
    """2 l b G s h · 2 for `rows` texts of `tokens` tokens; `each` is the bytes of a number."""
    return cache_numbers(shape.groups or shape.heads, shape.head_size, shape.layers) * tokens * rows * each


def latent_cache_numbers(latent: int, turned: int, layers: int = 1) -> int:
    """(d_c + d_R) l: the latent and the one rotary key of one token."""
    return (latent + turned) * layers


def equivalent_groups(latent: int, turned: int, head_size: int) -> float:
    """How many groups of keys and values would take as much."""
    return latent_cache_numbers(latent, turned) / cache_numbers(1, head_size)


def per_device(cache: float, groups: int, devices: int) -> float:
    """What each device holds: groups are dealt out; with fewer groups than devices they are repeated."""
    return cache / min(groups, devices)


def cached_products(tokens: int) -> int:
    """Σ t: query-key products to write this many tokens with the cache."""
    return tokens * (tokens + 1) // 2


def causal_products(tokens: int) -> int:
    """Σ t(t+1)/2: without the cache, where no product above the diagonal is taken."""
    return tokens * (tokens + 1) * (tokens + 2) // 6


def full_products(tokens: int) -> int:
    """Σ t²: without the cache, where the whole square is taken and then masked."""
    return tokens * (tokens + 1) * (2 * tokens + 1) // 6


def group_of(head: int, heads: int, groups: int) -> int:
    """The key and value set of a query head: h // (n / G)."""
    if heads % groups:
        raise ValueError(f"{heads} heads cannot share {groups} key heads evenly: the number must divide")
    return head // (heads // groups)
