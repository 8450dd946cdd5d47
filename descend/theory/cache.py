"""What the cache of a decoder costs: numbers for a token, by the kind of attention.

    multi-head       2 n_h d_h l           grouped   2 n_g d_h l           multi-query   2 d_h l
    latent           (d_c + d_R) l         DeepSeek-V2: d_c = 4 d_h, d_R = d_h / 2, so 9/2 d_h l: 2.25 groups

Multi-query is smaller by the number of heads. With as many groups as devices, grouped queries cost each device what a
replicated multi-query cache would.

Systems: multi-query-attention, grouped-query-attention, multi-head-latent-attention
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


def group_of(head: int, heads: int, groups: int) -> int:
    """The key and value set of a query head: h // (n / G)."""
    if heads % groups:
        raise ValueError(f"{heads} heads cannot share {groups} key heads evenly: the number must divide")
    return head // (heads // groups)
