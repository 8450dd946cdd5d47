"""Every model with a decoder writes the numbers of its forward pass: cache = no cache = compiled, by being there."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from inspect import signature
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from descend.models import model_class, names
from descend.native.build import library
from descend.nn.decoding.cached import CachedDecoder
from tests.close import close

DECODERS = [name for name in names() if callable(getattr(model_class(name), "decoder", None))]
COMPILED = {"gpt2", "llama", "mistral"}
"""Those whose step is one call of compiled code; the others have blocks that it does not know."""
LENGTH = 9


def build(name: str) -> Any:
    """The TINY model with weights large enough that every part shows."""
    torch.manual_seed(0)
    tiny = import_module(f"descend.models.{name}").TINY
    roomy = {"capacity": 64} if "capacity" in vars(tiny) else {}  # a full expert drops tokens of the whole text only
    model = model_class(name)(replace(tiny, **roomy)).eval()
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.2)
    return model


def vocabulary(model: Any) -> int:
    return int(getattr(model.config, "target_vocab", 0) or model.config.vocab)


def write(decoder: Any, x: Tensor, prompt: int) -> Tensor:
    """Logits (b, t, v) after the prompt and after every further token."""
    found = [decoder.start(x[:, :prompt], torch.zeros(len(x), dtype=torch.long), LENGTH)]
    found += [decoder.step(x[:, i]) for i in range(prompt, LENGTH)]
    return torch.stack(found, 1)


@pytest.mark.system("kv-cache", "every-decoder")
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", DECODERS)
def test_the_decoder_writes_what_the_model_says(name: str, rows: int) -> None:
    model = build(name)
    random = torch.Generator().manual_seed(1)
    x = torch.randint(3, vocabulary(model), (rows, LENGTH), generator=random)
    source = torch.randint(3, 20, (rows, 6), generator=random)
    answers = len(signature(model.decoder).parameters) > 0  # a model that reads a source first
    with torch.no_grad():
        expected = (model(source, x) if answers else model(x))[:, 3:]
    decoder = model.decoder(source, torch.ones_like(source, dtype=torch.bool)) if answers else model.decoder()
    close(write(decoder, x, 4), expected, loosen=5)  # large weights: sums of large terms in another order
    if isinstance(decoder, CachedDecoder):
        assert (decoder.native is not None) == (name in COMPILED and library() is not None)
        decoder.native = None
        close(write(decoder, x, 4), expected, loosen=5)
