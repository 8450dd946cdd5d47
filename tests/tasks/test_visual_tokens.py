"""VQ-VAE and transformer in one step: terms, independence, and what is scored."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy

from descend.losses.quantization import usage
from descend.losses.reconstruction import squared_error
from descend.models import dalle, vq_vae
from descend.tasks.visual_tokens import Quantize, VisualTokens, sum_terms
from tests.close import close


@pytest.mark.system("vq-vae", "losses")
def test_the_three_terms_of_a_vq_vae() -> None:
    torch.manual_seed(0)
    model, x = vq_vae.VQVAE(vq_vae.TINY), vq_vae.TINY_INPUT()
    task = Quantize(model, beta=0.25)
    [move] = task.moves({"x": x})
    found = move.value().terms
    y, code, entry = model(x)
    close(found["reconstruction"], (x - y).square().mean())
    close(found["codebook"], (code - entry).square().mean())
    close(found["commitment"], 0.25 * found["codebook"])
    scored = task.score({"x": x})
    close(scored["loss"].mean(), sum_terms(found))
    close(scored["squared_error"], squared_error(x, y))
    judged = task.judge({}, {"tokens": scored["tokens"]})
    assert judged["codes_in_use"] == pytest.approx(float(usage(model.tokens(x), 5)))


@pytest.mark.system("dall-e-1", "one-transformer")
def test_text_and_image_losses() -> None:
    """1/8 of the text's and 7/8 of the image's; the transformer's losses do not move the VQ-VAE."""
    torch.manual_seed(0)
    model, (captions, x) = dalle.DallE(dalle.TINY), dalle.TINY_INPUT()
    task = VisualTokens(model)
    found = task.loss({"x": x, "tokens": captions}).terms
    logits = model.next_logits(model.join(captions, model.codes.tokens(x)))
    text = cross_entropy(logits[:, :3, :7].flatten(0, 1), captions[:, 1:].flatten())
    image = cross_entropy(logits[:, 3:, 7:].flatten(0, 1), model.codes.tokens(x).flatten())
    close(found["text"], text / 8)
    close(found["image"], image * 7 / 8)
    parameters = list(model.codes.parameters())
    assert torch.autograd.grad(found["text"] + found["image"], parameters, allow_unused=True) == (None,) * len(
        parameters
    )
    scored = task.score({"x": x, "tokens": captions})
    close(scored["loss"].mean(), sum_terms(found))


@pytest.mark.system("vq-vae", "prior")
def test_without_text_it_is_a_prior_over_tokens() -> None:
    torch.manual_seed(0)
    model = dalle.DallE(replace(dalle.TINY, words=1, caption=1))
    x = dalle.TINY_INPUT()[1]
    found = VisualTokens(model).loss({"x": x}).terms
    assert "text" not in found
    tokens = model.codes.tokens(x).flatten(1)
    row = torch.cat([torch.zeros(2, 1, dtype=torch.long), 1 + tokens], 1)
    close(found["image"], cross_entropy(model.transformer(row)[:, :-1, 1:].mT, tokens))
    assert not model.offers
