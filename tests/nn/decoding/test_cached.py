"""The decoder leaves its model alone and refuses what it would not compute. Its numbers are proven in test_cache."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.models.gpt2 import GPT2, TINY, GPT2Config
from tests.close import close


def test_dropout_is_off_and_the_model_stays_in_its_mode() -> None:
    torch.manual_seed(0)
    model = GPT2(GPT2Config(vocab=61, context=24, width=32, depth=2, heads=4, dropout=0.5)).train()
    x, pad = torch.randint(61, (2, 7)), torch.zeros(2, dtype=torch.long)
    decoder = model.decoder()
    found = [decoder.start(x[:, :6], pad, 7), decoder.step(x[:, 6])]
    assert model.training
    with torch.no_grad():
        close(torch.stack(found, 1), model.eval()(x)[:, 5:])


def test_an_adapter_is_not_lost_silently() -> None:
    model = GPT2(TINY)

    class Adapted(nn.Linear):
        pass

    model.h[1].mlp.up = Adapted(32, 128)  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="Adapted cannot be decoded with: merge it"):
        model.decoder()


def test_a_decoder_can_start_again() -> None:
    decoder, pad = GPT2(TINY).decoder(), torch.zeros(1, dtype=torch.long)
    x = torch.tensor([[5, 6, 7]])
    first = decoder.start(x, pad, 5)
    decoder.step(torch.tensor([1]))
    assert torch.equal(decoder.start(x, pad, 5), first)
