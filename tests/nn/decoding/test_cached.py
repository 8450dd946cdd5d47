"""The decoder leaves its model alone and refuses what it would not compute. Its numbers are proven in test_cache."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from descend.models.gpt2 import GPT2, TINY, GPT2Config
from descend.models.llama import TINY as LLAMA
from descend.models.llama import Llama
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


@pytest.mark.system("multi-query-attention", "decoding")
@pytest.mark.system("grouped-query-attention")
@pytest.mark.system("kv-cache")
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("prompt", [1, 4])
def test_grouped_queries_without_compiled_code(kv_heads: int, prompt: int) -> None:
    """In double precision each step goes through torch: a group of queries looks at the head that they share."""
    torch.manual_seed(0)
    model = Llama(replace(LLAMA, kv_heads=kv_heads)).double()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    x = torch.randint(61, (2, 9), generator=torch.Generator().manual_seed(1))
    decoder = model.decoder()
    with torch.no_grad():
        full = model(x)
        close(decoder.start(x[:, :prompt], torch.zeros(2, dtype=torch.long), 9), full[:, prompt - 1])
        for t in range(prompt, 9):
            close(decoder.step(x[:, t]), full[:, t])
