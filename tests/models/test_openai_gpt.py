"""GPT-1 against transformers' own, both ways, and its decoding with norms after the layers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.models.openai_gpt import TINY, OpenAIGPT
from descend.sampling.decoder import Recompute
from descend.sampling.generate import generate
from tests.close import close
from tests.models.peers import check_both_ways, check_generation, random_peer

transformers = pytest.importorskip("transformers")


def peer() -> Any:
    config = transformers.OpenAIGPTConfig(vocab_size=61, n_positions=40, n_embd=32, n_layer=2, n_head=4)
    return random_peer(transformers.OpenAIGPTLMHeadModel, config)


def tokens() -> Tensor:
    return torch.randint(61, (3, 17), generator=torch.Generator().manual_seed(1))


@pytest.mark.system("gpt", "post-norm")
@pytest.mark.system("gpt-1")
@pytest.mark.system("gpt-1", "model")
def test_both_ways(tmp_path: Path) -> None:
    theirs, x = peer(), tokens()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(x).logits)
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["model_type"] == "openai-gpt"
    close(ours.hidden(x), theirs.transformer(x).last_hidden_state)


@pytest.mark.system("autoregressive-generation", "models")
@pytest.mark.system("gpt-1")
@pytest.mark.system("gpt-1", "model")
@pytest.mark.parametrize("prompts", [[[5, 3, 9, 1]], [[7, 2], [4, 4, 8, 1, 30], [11, 60, 3]]], ids=["one", "padded"])
def test_generation(prompts: list[list[int]], tmp_path: Path) -> None:
    theirs = peer()
    theirs.save_pretrained(tmp_path)
    ours = descend.load(tmp_path)
    check_generation(theirs, ours, prompts, 20)
    assert generate(Recompute(ours, 40), prompts, 20) == generate(ours.decoder(), prompts, 20)  # type: ignore[operator]


@pytest.mark.system("gpt-1")
@pytest.mark.system("gpt-1", "causal")
@pytest.mark.system("gpt")
@pytest.mark.system("gpt", "causal")
def test_no_position_sees_a_later_one() -> None:
    torch.manual_seed(0)
    model, x = OpenAIGPT(TINY).eval(), tokens()
    changed = x.clone()
    changed[:, 9:] = (x[:, 9:] + 1) % 61
    with torch.no_grad():
        assert torch.equal(model(x)[:, :9], model(changed)[:, :9])
        assert not torch.allclose(model(x)[:, 9:], model(changed)[:, 9:])
