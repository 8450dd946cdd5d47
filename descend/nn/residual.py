"""How a transformer block is wired: one description for the module that trains and the decoder that writes.

    pre-norm    y = x + attention(norm_1(x)),  x' = y + mlp(norm_2(y))          GPT-2, LLaMA, Mistral
    post-norm   y = norm_1(x + attention(x)),  x' = norm_2(y + mlp(y))          GPT
    parallel    x' = x + attention(n) + mlp(n),  n = norm(x)                    PaLM

`attention` and `mlp` are functions: a module hands in its layers with their dropout, the decoder attention to its
cache. The compiled step (`native/decoding.cpp`) is the pre-norm form; a contract test holds all of them to the same
numbers, for every model with a decoder.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

Layer = Callable[[Tensor], Tensor]


def add_pre_norm(x: Tensor, norm_1: Layer, attention: Layer, norm_2: Layer, mlp: Layer) -> Tensor:
    """y = x + attention(norm_1(x)),  x' = y + mlp(norm_2(y))"""
    x = x + attention(norm_1(x))
    return x + mlp(norm_2(x))


def add_post_norm(x: Tensor, norm_1: Layer, attention: Layer, norm_2: Layer, mlp: Layer) -> Tensor:
    """y = norm_1(x + attention(x)),  x' = norm_2(y + mlp(y))"""
    x = norm_1(x + attention(x))
    return norm_2(x + mlp(x))


def add_parallel(x: Tensor, norm: Layer, attention: Layer, mlp: Layer) -> Tensor:
    """x' = x + attention(n) + mlp(n),  n = norm(x)"""
    n = norm(x)
    return x + attention(n) + mlp(n)
