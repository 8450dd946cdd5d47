"""Sharing compute: Chinchilla's rule, and the optimum of any law by search and in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from descend.errors import Mistake
from descend.models.gpt2 import GPT2, GPT2Config
from descend.theory.compute_optimal import (
    advise,
    allocate,
    iso_flop,
    minimise,
    optimal_exponent,
    optimum,
    print_allocation,
    required_flops,
    training_flops,
)
from descend.theory.scaling_laws import HOFFMANN, KAPLAN_JOINED, KAPLAN_REFITTED, AdditiveLaw, UnifiedLaw
from tests.close import close


@pytest.mark.system("chinchilla-allocation", "optimum", "required")
def test_the_budget_is_spent_exactly() -> None:
    for flops in (1e18, 1e21, 5.88e23):
        n, d = allocate(flops)
        close(training_flops(n, d) / flops, 1.0)
        close(d / n, 20.0)
        close(required_flops(n) / flops, 1.0)
    with pytest.raises(Mistake, match="above 0"):
        allocate(0)


@pytest.mark.system("chinchilla-allocation", "errata")
def test_the_printed_form_spends_six_percent() -> None:
    assert training_flops(*print_allocation(1e23)) / 1e23 == pytest.approx(0.0588)


@pytest.mark.system("chinchilla-allocation", "data-limited")
def test_advice_for_too_little_data() -> None:
    assert advise(7e9, 140e9).startswith("enough data")
    assert "train 3.5e+09 parameters" in advise(7e9, 70e9)


@pytest.mark.system("allocation-by-minimisation", "numeric")
@pytest.mark.parametrize("law", [KAPLAN_JOINED, KAPLAN_REFITTED, HOFFMANN])
def test_search_finds_the_closed_form(law: UnifiedLaw | AdditiveLaw) -> None:
    for flops in (1e19, 1e23):
        (n, d), (m, e) = optimum(law, flops), minimise(law, flops)
        close(n / m, 1.0, 100)  # a minimum is flat: its place has half the digits of its value
        close(training_flops(m, e) / flops, 1.0)
        assert law(n, d) <= min(law(1.1 * n, d / 1.1), law(n / 1.1, 1.1 * d))
    low, high = (optimum(law, flops)[0] for flops in (1e20, 1e24))
    close(math.log(high / low) / math.log(1e4), optimal_exponent(law))


@pytest.mark.system("allocation-by-minimisation", "closed-form")
def test_the_exponents_of_the_books() -> None:
    """VOM-14.9.4-exponent, to the four digits it has: 0.5555 and 7.246e10; not 0.73, nor 0.5."""
    low, high = (minimise(KAPLAN_JOINED, flops)[0] for flops in (1e22, 1e24))
    assert math.log(high / low) / math.log(100) == pytest.approx(0.5555, abs=2e-4)
    assert minimise(KAPLAN_JOINED, 1e23)[0] == pytest.approx(7.246e10, rel=2e-4)
    assert optimal_exponent(KAPLAN_JOINED) == pytest.approx(0.556, abs=5e-4)
    assert optimal_exponent(HOFFMANN) == pytest.approx(0.45, abs=2e-3)


@pytest.mark.system("allocation-by-minimisation", "iso-flop")
def test_a_curve_of_equal_compute_is_a_valley() -> None:
    n, _ = optimum(HOFFMANN, 1e21)
    sizes = (n * np.geomspace(0.1, 10, 21)).tolist()
    losses = iso_flop(HOFFMANN, 1e21, sizes)
    at = losses.index(min(losses))
    close(sizes[at], n)
    assert losses[:at] == sorted(losses[:at], reverse=True)
    assert losses[at:] == sorted(losses[at:])


@pytest.mark.system("allocation-by-minimisation", "six-flops")
def test_counted_flops_come_near_six_for_each_parameter_and_token() -> None:
    """Forward and backward of a decoder, counted by torch, over 6 · parameters outside the embeddings · tokens. The
    scores of attention and the output layer are beyond it, and matter less the wider the model."""
    over = []
    for width in (64, 256):
        config = GPT2Config(vocab=64, context=16, width=width, depth=2, heads=4, dropout=0.0)
        model, tokens = GPT2(config), torch.zeros(2, 16, dtype=torch.long)
        with FlopCounterMode(display=False) as counter:
            model(tokens).sum().backward()
        inner = sum(p.numel() for p in model.h.parameters() if p.dim() > 1)
        over.append(counter.get_total_flops() / training_flops(inner, tokens.numel()) - 1)
    assert 0 < over[1] < over[0]
    assert over[1] < 0.08
