"""How simple a function is: the Lempel-Ziv complexity of its outputs, and how often random weights give it.

    x = f(0…0) f(0…01) … f(1…1)                  the truth table of a Boolean function of n bits, 2^n letters
    N_w(x)    words of the 1976 parsing          each word is the shortest that has not occurred before
    K(x)      log2(m) (N_w(x) + N_w(reversed x)) / 2         and log2(m) where x is constant, m = 2^n

DLD only says that most random weights give simple functions; measure and experiment are those of Valle-Pérez et al.
If weights were fair, every one of the 2^128 functions of 7 bits would have the probability 2^−128.

Systems: simplicity-bias
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor


def count_words(text: str) -> int:
    """N_w: words of the Lempel-Ziv (1976) parsing; a word may overlap with where it occurred before."""
    words, at = 0, 0
    while at < len(text):
        length = 1
        while at + length <= len(text) and text[at : at + length] in text[: at + length - 1]:
            length += 1
        words, at = words + 1, at + length
    return words


def lempel_ziv(text: str) -> float:
    """K(x) in bits."""
    if len(set(text)) <= 1:
        return math.log2(len(text))
    return math.log2(len(text)) * (count_words(text) + count_words(text[::-1])) / 2


def draw_functions(bits: int, widths: Sequence[int], draws: int, random: torch.Generator) -> Tensor:
    """Truth tables (draws, 2^bits) of random ReLU networks: weights N(0, 1/fan_in), biases N(0, 0.1²)."""
    inputs = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * bits).view(-1, bits)
    x = inputs.expand(draws, -1, -1)
    sizes = [bits, *widths, 1]
    for layer, (n, m) in enumerate(pairwise(sizes)):
        weight = torch.randn(draws, n, m, generator=random) / math.sqrt(n)
        x = torch.baddbmm(0.1 * torch.randn(draws, 1, m, generator=random), x, weight)
        if layer < len(widths):
            x = x.relu()
    return x.squeeze(-1) > 0
