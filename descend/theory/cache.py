"""What the cache of a decoder costs: numbers for a token, by the kind of attention.

    multi-head       2 n_h d_h l           grouped   2 n_g d_h l           multi-query   2 d_h l
    latent           (d_c + d_R) l         DeepSeek-V2: d_c = 4 d_h, d_R = d_h / 2, so 9/2 d_h l: 2.25 groups

Multi-query is smaller by the number of heads. With as many groups as devices, grouped queries cost each device what a
replicated multi-query cache would.

Query-key products to write T tokens, one after the other:

    with the cache    Σ t        = T (T+1) / 2             each new query meets the keys so far
    without, causal   Σ t(t+1)/2 = T (T+1) (T+2) / 6       all queries again, each meets the keys up to itself
    without, full     Σ t²       = T (T+1) (2T+1) / 6      all queries again, all keys; the mask is laid on afterwards

Systems: kv-cache, multi-query-attention, grouped-query-attention, multi-head-latent-attention
"""

from __future__ import annotations


def cache_numbers(kv_heads: int, head_size: int, layers: int = 1) -> int:
    """2 g d_h l: keys and values of one token."""
    return 2 * kv_heads * head_size * layers


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
