"""The losses of a VQ-VAE act on one side each; usage counts entries."""

from __future__ import annotations

import pytest
import torch

from descend.losses.quantization import codebook_loss, commitment_loss, usage
from tests.close import close


@pytest.mark.system("vq-vae", "losses")
def test_each_loss_moves_one_side() -> None:
    random = torch.Generator().manual_seed(0)
    code, entry = (v.requires_grad_() for v in torch.randn(2, 4, 3, dtype=torch.float64, generator=random))
    square = (code - entry).square().sum(-1).detach()
    close(codebook_loss(code, entry), square)
    close(commitment_loss(code, entry), square)
    codebook_loss(code, entry).sum().backward()
    assert code.grad is None
    close(entry.grad, 2 * (entry - code).detach())
    entry.grad = None
    commitment_loss(code, entry).sum().backward()
    assert entry.grad is None
    close(code.grad, 2 * (code - entry).detach())


@pytest.mark.system("vq-vae", "usage")
def test_usage_is_the_perplexity_of_the_tokens() -> None:
    close(usage(torch.arange(8), 8), torch.tensor(8.0, dtype=torch.float64))
    close(usage(torch.zeros(5, 3, dtype=torch.long), 8), torch.tensor(1.0, dtype=torch.float64))
    p = torch.tensor([1 / 3, 2 / 3], dtype=torch.float64)
    close(usage(torch.tensor([0, 0, 1, 1, 1, 1]), 4), torch.distributions.Categorical(p).entropy().exp())
