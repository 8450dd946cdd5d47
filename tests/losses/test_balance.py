"""The load-balancing loss: its value at even use and collapse, and through what it has a gradient."""

from __future__ import annotations

import pytest
import torch

from descend.losses.balance import balance_loss, balance_value, load_entropy, shares
from tests.close import close


@pytest.mark.system("load-balancing-loss", "value")
@pytest.mark.system("load-balancing-loss")
@pytest.mark.parametrize("k", [1, 2])
def test_even_use_gives_k_and_collapse_n(k: int) -> None:
    index = torch.stack([(torch.arange(8) + i) % 8 for i in range(k)], 1)
    close(balance_loss(torch.full((8, 8), 1 / 8), index), torch.tensor(float(k)))
    gone = torch.zeros(8, 8)
    gone[:, :k] = 1 / k
    close(balance_loss(gone, torch.arange(k).expand(8, k)), torch.tensor(8.0))


@pytest.mark.system("load-balancing-loss", "gradient")
@pytest.mark.system("load-balancing-loss")
def test_the_gradient_flows_through_the_gates_alone() -> None:
    z = torch.randn(12, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    index = z.topk(2).indices
    share = shares(index, 4).double()
    assert not share.requires_grad
    found = torch.autograd.grad(balance_loss(z.softmax(-1), index), z)[0]
    p = z.softmax(-1).detach()
    close(found, 4 / 12 * p * (share - (p * share).sum(-1, keepdim=True)))  # N/n · softmax' of P
    assert torch.autograd.gradcheck(lambda z: balance_loss(z.softmax(-1), index), z)


@pytest.mark.system("load-balancing-loss", "letters")
@pytest.mark.system("load-balancing-loss")
def test_shares_and_entropy() -> None:
    index = torch.tensor([[0, 1], [0, 2], [0, 1], [3, 0]])
    close(shares(index, 4), torch.tensor([1.0, 0.5, 0.25, 0.25]))
    close(balance_value(torch.tensor([0.7, 0.1, 0.1, 0.1]), shares(index, 4)), torch.tensor(4 * 0.8))
    close(load_entropy(torch.full((4,), 0.5)), torch.tensor(1.0))
    assert load_entropy(torch.tensor([1.0, 0.0, 0.0])) == 0
