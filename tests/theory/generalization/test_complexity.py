"""Lempel-Ziv complexity: the parsing of the paper of 1976, and what it orders."""

from __future__ import annotations

import math

import pytest
import torch

from descend.theory.generalization.complexity import count_words, draw_functions, lempel_ziv


@pytest.mark.system("simplicity-bias")
@pytest.mark.system("simplicity-bias", "measure")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0001101001000101", 6),  # 0 · 001 · 10 · 100 · 1000 · 101, of Lempel and Ziv
        ("0000000000", 2),  # 0 · 000…
        ("0101010101", 3),  # 0 · 1 · 0101…
        ("0", 1),
        ("01", 2),
    ],
)
def test_words(text: str, words: int) -> None:
    assert count_words(text) == words


@pytest.mark.system("simplicity-bias", "measure")
def test_simple_tables_are_simpler_than_random_ones() -> None:
    random = torch.Generator().manual_seed(0)
    noise = ["".join(map(str, torch.randint(2, (128,), generator=random).tolist())) for _ in range(50)]
    repeated = "01" * 64
    assert lempel_ziv("1" * 128) == lempel_ziv("0" * 128) == 7  # log2 of 128
    assert 7 < lempel_ziv(repeated) < 30
    mean = sum(map(lempel_ziv, noise)) / 50
    assert 0.9 * 128 < mean < 1.4 * 128  # n / log2 n words of log2 n bits
    assert math.isclose(lempel_ziv(repeated), lempel_ziv(repeated[::-1]))


def test_random_networks() -> None:
    tables = draw_functions(3, (5,), 40, torch.Generator().manual_seed(0))
    assert tables.shape == (40, 8)
    assert 0 < float(tables.double().mean()) < 1
    assert torch.equal(tables, draw_functions(3, (5,), 40, torch.Generator().manual_seed(0)))
