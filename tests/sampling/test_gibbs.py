"""Gibbs sampling against exact probabilities of small machines."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor

from descend.ops.energy.gibbs import gibbs
from descend.sampling.gibbs import Bits, draw_bits, gibbs_blocks, gibbs_sweep
from descend.seeds import generator

pytestmark = pytest.mark.system("gibbs-contrastive-divergence")
DOUBLE = torch.float64


def all_bits(n: int) -> Tensor:
    return torch.tensor(list(product((0.0, 1.0), repeat=n)), dtype=DOUBLE)


def frequencies(x: Tensor) -> Tensor:
    """Of each row of all_bits."""
    places = 2 ** torch.arange(x.shape[1] - 1, -1, -1, dtype=DOUBLE)
    return torch.bincount((x @ places).long(), minlength=2 ** x.shape[1]) / len(x)


@pytest.mark.system("gibbs-contrastive-divergence", "gibbs-exact")
def test_single_sites_of_an_ising_type_energy() -> None:
    """E = −½ xᵀ J x − b·x of four bits; 20,000 chains."""
    random = generator(0)
    j, b = torch.randn(4, 4, generator=random, dtype=DOUBLE), torch.randn(4, generator=random, dtype=DOUBLE)
    j = (j + j.T) * (1 - torch.eye(4, dtype=DOUBLE)) / 2

    def energy(x: Tensor) -> Tensor:
        return -((x @ j) * x).sum(1) / 2 - x @ b

    x = draw_bits(torch.full((20_000, 4), 0.5, dtype=DOUBLE), torch.rand(20_000, 4, generator=random))
    for _ in range(25):
        x = gibbs_sweep(energy, x, torch.rand(20_000, 4, generator=random))
    exact = gibbs(energy(all_bits(4)))
    assert (frequencies(x) - exact).abs().max() < 0.012
    assert (exact - 1 / 16).abs().max() > 0.05


def test_a_chain_can_be_repeated() -> None:
    u = torch.rand(3, 5, generator=generator(1))
    assert draw_bits(torch.tensor([0.0, 1.0]), torch.tensor([0.0, 0.999])).tolist() == [0.0, 1.0]
    share: Callable[[int], Bits] = lambda n: lambda bits: bits.mean(1, keepdim=True).expand(-1, n)
    runs = [gibbs_blocks(share(2), share(5), torch.ones(3, 5), [(u[:, :2], u)]) for _ in range(2)]
    assert torch.equal(*runs)
