"""VQ-VAE: tokens and back, gradients, and learning digits."""

from __future__ import annotations

import pytest
import torch

from descend.data.images.digits import load_digits_split
from descend.engine.minimise import minimise
from descend.losses.reconstruction import squared_error
from descend.models.vq_vae import TINY, TINY_INPUT, VQVAE, VQVAEConfig
from descend.optim.rules import AdamW
from descend.tasks.visual_tokens import quantization_terms, sum_terms
from tests.close import close


@pytest.mark.system("vq-vae")
@pytest.mark.system("vq-vae", "tokens", "nearest")
def test_tokens_and_back() -> None:
    torch.manual_seed(0)
    model, x = VQVAE(TINY), TINY_INPUT()
    tokens = model.tokens(x)
    assert tokens.shape == (2, *TINY.grid)
    code = model.encode(x)
    nearest = torch.cdist(code.flatten(0, 2), model.quantizer.codebook.weight).argmin(1)
    assert torch.equal(tokens.flatten(), nearest)
    y, _, entry = model(x)
    close(y, model.from_tokens(tokens))
    close(model.reconstruct(x), y)
    close(entry, model.quantizer.decode(tokens))
    with pytest.raises(ValueError, match="cannot be halved"):
        VQVAE(VQVAEConfig(image=(3, 30, 30), halvings=2))


@pytest.mark.system("vq-vae", "straight-through")
def test_the_encoders_gradient_is_the_decoders() -> None:
    torch.manual_seed(0)
    model, x = VQVAE(TINY).double(), TINY_INPUT().double()
    code = model.encode(x)
    at = model.quantize(code).entry.detach().requires_grad_()
    (sent,) = torch.autograd.grad(squared_error(x, model.decode(at)).sum(), at)
    parameters = list(model.encoder.parameters())
    ours = torch.autograd.grad(squared_error(x, model(x)[0]).sum(), parameters)
    theirs = torch.autograd.grad(code, parameters, grad_outputs=sent)
    for a, b in zip(ours, theirs, strict=True):
        close(a, b)


@pytest.mark.system("vq-vae", "tokens", "usage")
def test_digits_through_sixteen_whole_numbers() -> None:
    split = load_digits_split()
    x, held_out = split.train.x.float() * 2 - 1, split.valid.x.float() * 2 - 1
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = VQVAE(VQVAEConfig(image=(1, 8, 8), maps=24, halvings=1, vocab=32, code=6))
    model.quantizer.place_entries(model.encode(x[:200]).detach().flatten(0, 2), torch.Generator().manual_seed(0))
    random = torch.Generator().manual_seed(0)

    def loss() -> torch.Tensor:
        batch = x[torch.randint(len(x), (64,), generator=random)]
        y, code, entry = model(batch)
        return sum_terms(quantization_terms(batch, y, code, entry, 0.25))

    minimise(model, loss, 250, AdamW(3e-3, weight_decay=0.0))
    with torch.no_grad():
        error = squared_error(held_out, model.reconstruct(held_out)).mean()
        used = len(model.tokens(held_out).unique())
    assert error < 0.4 * squared_error(held_out, x.mean(0).expand_as(held_out)).mean()
    assert used > 8
