"""A transformers GPT-2 with random weights, saved to disk, and the same one opened by descend."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import descend
from descend.models.gpt2 import GPT2

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=61, n_positions=24, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=None
    )
    model = transformers.GPT2LMHeadModel(config)
    for name, p in model.named_parameters():  # loud enough that it does not repeat one token
        if "ln_" not in name:
            nn.init.normal_(p, std=0.5)
    path = tmp_path_factory.mktemp("gpt2")
    model.save_pretrained(path)
    return path


@pytest.fixture
def gpt2(folder: Path) -> GPT2:
    model = descend.load(folder)
    assert isinstance(model, GPT2)
    return model


@pytest.fixture
def theirs(folder: Path) -> nn.Module:
    model: nn.Module = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    return model
