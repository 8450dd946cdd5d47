"""Worked examples: what the cache of GPT-3's sizes takes, and the latency of a batch."""

from __future__ import annotations

from descend.catalog.examples import Compute, Inputs
from descend.theory.cache import MEGABYTE, CacheShape, cache_bytes, cache_numbers
from descend.theory.latency import batch_latency, throughput_gain


def of_shape(i: Inputs, groups: int) -> int:
    return cache_bytes(CacheShape(i["l"], i["n"], i["h"], groups), i["s"], i["b"], i["bytes"])


def memory(i: Inputs) -> Inputs:
    """Megabytes are 2^20 bytes. The formula of grouped queries is taken as printed: 8 groups also for 12 heads."""
    grouped = cache_numbers(i["G"], i["h"], i["l"]) * i["s"] * i["b"] * i["bytes"]
    full = of_shape(i, 0)
    return {
        "MHA_bytes": full,
        "MHA_MB": full / MEGABYTE,
        "MQA_MB": of_shape(i, 1) / MEGABYTE,
        "GQA_MB": grouped / MEGABYTE,
    }


def memory_of_xl(i: Inputs) -> Inputs:
    """With the 16 heads that 1.3B parameters leave room for."""
    return {**memory(i), "MHA_MB_if_16_heads": of_shape({**i, "n": 16}, 0) / MEGABYTE}


def memory_of_largest(i: Inputs) -> Inputs:
    return {**memory(i), "MHA_GB": of_shape(i, 0) / MEGABYTE / 1024}


def latency(i: Inputs) -> Inputs:
    """Of a whole batch, though the book heads the column ms/img."""
    return {
        "latency_ms": [1000 * batch_latency(b, rate) for b, rate in zip(i["batch"], i["throughput"], strict=True)],
        "throughput_gain": throughput_gain(i["throughput"]),
    }


EXAMPLES: dict[str, Compute] = {
    **{f"DLN-KVCache-GPT3-{size}": memory for size in ("Small", "Medium", "Large", "2.7B", "6.7B", "13B")},
    "DLN-KVCache-GPT3-XL": memory_of_xl,
    "DLN-KVCache-GPT3-175B": memory_of_largest,
    "MF-28.4.4-batch-latency": latency,
}

SET_ASIDE: dict[str, str] = {
    "MF-28.4-claims": "a measurement of no named machine; `descend compress` tells size and time on this one",
}
