"""The logit lens ends at the model's own answer."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch
from torch import nn

from descend.errors import Mistake
from descend.interpret.logit_lens import logit_lens
from descend.models import model_class
from tests.close import close


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral"])
def test_the_last_layer_says_what_the_model_says(name: str) -> None:
    torch.manual_seed(0)
    model = model_class(name)(import_module(f"descend.models.{name}").TINY).eval()
    tokens = torch.randint(model.config.vocab, (1, 6))
    p = logit_lens(model, model.decoder().ends, tokens)
    assert p.shape == (model.config.depth, 6, model.config.vocab)
    with torch.no_grad():
        close(p[-1], model(tokens)[0].softmax(-1))
    close(p.sum(-1), torch.ones(model.config.depth, 6))


def test_what_is_no_stack_of_blocks() -> None:
    with pytest.raises(Mistake, match="no stack of blocks"):
        logit_lens(nn.Linear(2, 2), None, torch.zeros(1, 2))  # type: ignore[arg-type]
