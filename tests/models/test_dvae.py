"""The discrete VAE: its relaxed code, tokens and back, and its place in a DALL-E."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from descend.models import load
from descend.models.dalle import TINY as DALLE
from descend.models.dalle import DallE
from descend.models.dvae import DVAE, TINY, TINY_INPUT
from descend.ops.relaxed_categorical import kl_to_uniform, relax
from descend.tasks.relaxed_tokens import RelaxedTokens
from tests.close import close


@pytest.mark.system("dall-e-1", "dvae")
def test_a_relaxed_code_and_tokens() -> None:
    torch.manual_seed(0)
    model, (x, u) = DVAE(TINY), TINY_INPUT()
    y, a = model(x, u)
    close(y, model.decode(relax(a, u, TINY.temperature) @ model.codebook.weight))
    tokens = model.tokens(x)
    assert tokens.shape == (2, *TINY.grid)
    assert torch.equal(tokens, a.argmax(-1))
    close(model.reconstruct(x), model.decode(model.codebook.weight[tokens]))
    [move] = RelaxedTokens(model, 0.5).moves({"x": x, "u": u})
    found = move.value().terms
    close(found["reconstruction"], (x - y).square().mean())
    close(found["kl"], 0.5 * kl_to_uniform(a).mean())
    close(RelaxedTokens(model, 0.5).score({"x": x, "u": u})["loss"].mean(), found["reconstruction"] + found["kl"])


@pytest.mark.system("dall-e-1", "dvae", "layout")
def test_its_tokens_serve_the_same_transformer(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, (x, _) = DallE(replace(DALLE, codes=TINY)).eval(), TINY_INPUT()
    captions = torch.randint(DALLE.words, (2, DALLE.caption))
    text, image = model.split(model.join(captions, model.codes.tokens(x)))
    assert torch.equal(text, captions)
    assert torch.equal(image, model.codes.tokens(x))
    drawn = model.draw_images(captions, torch.rand(2, DALLE.places))
    assert model.codes.from_tokens(drawn).shape == x.shape
    model.save_pretrained(tmp_path)
    again = load(tmp_path)
    assert again.config == model.config
    close(again.codes.from_tokens(drawn), model.codes.from_tokens(drawn))  # type: ignore[operator, union-attr]
