"""Vector quantization: the nearest entry, and gradients that pass straight through."""

from __future__ import annotations

import pytest
import torch

from descend.nn.vector_quantizer import VectorQuantizer
from tests.close import close


@pytest.mark.system("vq-vae")
@pytest.mark.system("vq-vae", "nearest")
def test_the_token_is_the_nearest_entry() -> None:
    torch.manual_seed(0)
    quantizer = VectorQuantizer(7, 3).double()
    torch.nn.init.normal_(quantizer.codebook.weight)
    code = torch.randn(2, 4, 5, 3, dtype=torch.float64)
    found = quantizer(code)
    nearest = torch.cdist(code.view(-1, 3), quantizer.codebook.weight).argmin(1).view(2, 4, 5)
    assert torch.equal(found.tokens, nearest)
    close(found.entry, quantizer.codebook.weight[nearest])
    close(found.straight, found.entry)
    close(quantizer.decode(nearest), found.entry)


@pytest.mark.system("vq-vae", "straight-through")
def test_the_gradient_passes_straight_through() -> None:
    """What reaches z_e is what the decoder sends to z_q; nothing of it reaches the codebook."""
    torch.manual_seed(0)
    quantizer = VectorQuantizer(7, 3).double()
    code = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    decoder = torch.nn.Linear(3, 4).double()
    found = quantizer(code)
    decoder(found.straight).square().sum().backward()
    at_entry = found.entry.detach().requires_grad_()
    (theirs,) = torch.autograd.grad(decoder(at_entry).square().sum(), at_entry)
    close(code.grad, theirs)
    assert quantizer.codebook.weight.grad is None


@pytest.mark.system("vq-vae", "usage")
def test_entries_placed_on_codes_are_all_in_use() -> None:
    torch.manual_seed(0)
    quantizer = VectorQuantizer(16, 3)
    codes = 5 + torch.randn(400, 3)
    assert len(quantizer.tokens(codes).unique()) < 6
    quantizer.place_entries(codes, torch.Generator().manual_seed(0))
    assert len(quantizer.tokens(codes).unique()) == 16
