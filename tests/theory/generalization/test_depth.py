"""Folding and parity: exact networks."""

from __future__ import annotations

import pytest
import torch

from descend.theory.generalization.depth import (
    count_pieces,
    fold,
    formula_terms,
    list_bits,
    shallow_parity,
    shallow_units,
    tent,
    tent_units,
    threshold_parity,
    tree_parity,
    xor,
)


@pytest.mark.system("depth-versus-width")
@pytest.mark.system("depth-versus-width", "tree", "shallow")
@pytest.mark.parametrize("n", [2, 4, 8])
def test_all_three_parities_are_exact(n: int) -> None:
    bits = list_bits(n)
    right = bits.sum(-1) % 2
    assert len(bits) == 2**n
    for network in (tree_parity, shallow_parity, threshold_parity):
        assert torch.equal(network(bits), right)
    assert formula_terms(n) == int(right.sum())  # one AND for each odd input, where n units were enough


def test_odd_numbers_of_bits() -> None:
    bits = list_bits(5)
    assert torch.equal(shallow_parity(bits), bits.sum(-1) % 2)
    with pytest.raises(ValueError, match="pad with zeros"):
        tree_parity(bits)


def test_xor() -> None:
    a, b = list_bits(2).T
    assert xor(a, b).tolist() == [0, 1, 1, 0]


@pytest.mark.system("depth-versus-width", "tent")
def test_the_tent_folds() -> None:
    """It is 0 at even and 1 at odd multiples of 2^−k, so a network of one layer needs a kink at each in between."""
    for k in range(1, 9):
        x = torch.linspace(0, 1, 2**k + 1, dtype=torch.float64)
        assert fold(x, k).tolist() == [0.0, 1.0] * 2 ** (k - 1) + [0.0]
        fine = torch.linspace(0, 1, 2 ** (k + 2) + 1, dtype=torch.float64)
        assert count_pieces(fold(fine, k)) == 2**k
        assert (tent_units(k), shallow_units(2**k)) == (2 * k, 2**k - 1)
    assert tent(torch.tensor([0.25, 0.5, 0.875])).tolist() == [0.5, 1.0, 0.25]
