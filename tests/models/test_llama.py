"""LLaMA against transformers' own, both ways: grouped queries, scaled rotary positions, cached decoding."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.errors import Mistake
from descend.models.llama import TINY, Llama
from descend.nn.attention.rotary import Rope
from tests.close import close
from tests.models.peers import check_both_ways, check_generation, random_peer

transformers = pytest.importorskip("transformers")

ROPES = {
    "default": {"rope_type": "default", "rope_theta": 10000.0},
    "linear": {"rope_type": "linear", "rope_theta": 500.0, "factor": 4.0},
    "llama3": {
        "rope_type": "llama3", "rope_theta": 1000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 12,
    },
    "dynamic": {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0},
    "yarn": {
        "rope_type": "yarn", "rope_theta": 1000.0, "factor": 8.0, "original_max_position_embeddings": 12,
        "beta_fast": 4.0, "beta_slow": 1.0,
    },
}  # fmt: skip


def peer(kv_heads: int = 2, rope: str = "default", tied: bool = False) -> Any:
    config = transformers.LlamaConfig(
        vocab_size=61, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=kv_heads, max_position_embeddings=40, rope_parameters=dict(ROPES[rope]), bos_token_id=0,
        eos_token_id=0, tie_word_embeddings=tied,
    )  # fmt: skip
    return random_peer(transformers.LlamaForCausalLM, config)


def tokens() -> Tensor:
    return torch.randint(61, (3, 17), generator=torch.Generator().manual_seed(1))


@pytest.mark.system("lm-weight-tying", "option")
@pytest.mark.system("grouped-query-attention", "llama")
@pytest.mark.system("swiglu-ffn", "models")
@pytest.mark.system("llama")
@pytest.mark.system("llama", "model")
@pytest.mark.system("grouped-query-attention")
@pytest.mark.system("multi-query-attention")
@pytest.mark.system("rope")
@pytest.mark.system("swiglu-ffn")
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_both_ways(kv_heads: int, tmp_path: Path) -> None:
    theirs, x = peer(kv_heads), tokens()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(x).logits)
    ours(x).square().mean().backward()
    theirs(x).logits.square().mean().backward()
    close(ours.blocks[0].attn.k.weight.grad, theirs.model.layers[0].self_attn.k_proj.weight.grad)


@pytest.mark.system("rope-scaling", "further", "models")
@pytest.mark.system("rope-scaling")
@pytest.mark.parametrize("rope", ["linear", "llama3", "dynamic", "yarn"])
def test_longer_contexts(rope: str, tmp_path: Path) -> None:
    x = tokens()
    check_both_ways(peer(rope=rope), tmp_path, lambda m: m(x), lambda m: m(x).logits)
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["rope_parameters"] == ROPES[rope]


@pytest.mark.system("rope-scaling", "models")
@pytest.mark.system("rope-scaling")
def test_dynamic_positions_beyond_the_trained_context(tmp_path: Path) -> None:
    """The base grows with the text: 70 tokens for a model of 40 positions, at once and written one by one."""
    theirs = peer(rope="dynamic")
    theirs.save_pretrained(tmp_path)
    ours, x = descend.load(tmp_path), torch.randint(61, (2, 70), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        close(ours(x), theirs(x).logits)
        close(ours(x[:, :39]), theirs(x[:, :39]).logits)  # at 40 theirs still has the base of the longer text
    check_generation(theirs, ours, [[5, 3, 9, 1]], 60)
    with pytest.raises(ValueError, match="81 tokens"):
        ours(torch.zeros(1, 81, dtype=torch.long))


@pytest.mark.system("llama")
@pytest.mark.system("lm-weight-tying")
@pytest.mark.system("lm-weight-tying", "gradient", "option")
def test_tied_embeddings(tmp_path: Path) -> None:
    """As in the small LLaMA 3.2: the output matrix is the embedding, here, there and in the file."""
    theirs, x = peer(tied=True), tokens()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(x).logits)
    assert ours.config.tied
    assert "head.weight" not in ours.state_dict()
    ours(x).square().mean().backward()
    theirs(x).logits.square().mean().backward()
    close(ours.embed.weight.grad, theirs.model.embed_tokens.weight.grad)  # the sum of both uses
    check_generation(theirs, ours, [[5, 3, 9, 1]], 20)


@pytest.mark.system("llama")
def test_the_spread_of_the_first_weights_is_in_the_file(tmp_path: Path) -> None:
    torch.manual_seed(0)
    Llama(replace(TINY, spread=0.25)).save_pretrained(tmp_path)
    theirs = transformers.AutoConfig.from_pretrained(tmp_path)
    assert theirs.initializer_range == 0.25
    model: Any = descend.load(tmp_path)
    assert model.config.spread == 0.25
    assert abs(float(model.blocks[0].mlp.up.weight.std()) - 0.25) < 0.02


@pytest.mark.system("autoregressive-generation", "models")
@pytest.mark.system("llama", "generation")
@pytest.mark.parametrize("prompts", [[[5, 3, 9, 1]], [[7, 2], [4, 4, 8, 1, 30], [11, 60, 3]]], ids=["one", "padded"])
@pytest.mark.parametrize("rope", ["llama3", "yarn"])
def test_generation(prompts: list[list[int]], rope: str, tmp_path: Path) -> None:
    theirs = peer(rope=rope)
    theirs.save_pretrained(tmp_path)
    check_generation(theirs, descend.load(tmp_path), prompts, 20)


@pytest.mark.system("llama")
@pytest.mark.system("llama", "no-biases", "relative")
def test_no_biases_and_only_distances_count() -> None:
    """No bias anywhere, and a layer at shifted positions gives the same output: rotary positions are relative."""
    torch.manual_seed(0)
    model = Llama(TINY).double()
    assert not [name for name, _ in model.named_parameters() if "bias" in name]
    x, rope = torch.randn(1, 9, 32, dtype=torch.float64), Rope()
    here, shifted = (model.blocks[0](x, rope.angles(torch.arange(9) + by, 8)) for by in (0, 5))
    close(here, shifted, loosen=1e3)  # the angles are float32
    assert not torch.allclose(here, model.blocks[0](x, rope.angles(2 * torch.arange(9), 8)), atol=1e-5)


@pytest.mark.system("llama", "generation")
@pytest.mark.system("rope", "cache")
def test_decoding_is_the_forward_pass() -> None:
    """With compiled code and without."""
    torch.manual_seed(0)
    model, x = Llama(TINY).eval(), tokens()
    for compiled in (True, False):
        decoder = model.decoder()
        if not compiled:
            decoder.native = None
        found = [decoder.start(x[:, :4], torch.zeros(3, dtype=torch.long), 17)]
        found += [decoder.step(x[:, t]) for t in range(4, 17)]
        with torch.no_grad():
            close(torch.stack(found, 1), model(x)[:, 3:])


def test_the_names_of_older_files(tmp_path: Path) -> None:
    theirs, x = peer(), tokens()
    theirs.save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    del values["rope_parameters"]
    values |= {"rope_theta": 500.0, "rope_scaling": {"type": "linear", "factor": 4.0}}
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert descend.load(tmp_path).config.rope == Rope(500.0, "linear", 4.0)
    with torch.no_grad():
        close(
            descend.load(tmp_path)(x),
            transformers.LlamaForCausalLM.from_pretrained(tmp_path)(x).logits,
        )


def test_an_unknown_kind_of_scaling_is_named(tmp_path: Path) -> None:
    peer().save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    values["rope_parameters"] = {"rope_type": "longrope", "rope_theta": 10000.0}
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(Mistake, match="rope_type 'longrope' is not known, only default, linear, llama3"):
        descend.load(tmp_path)


def test_a_text_beyond_the_context() -> None:
    with pytest.raises(ValueError, match="25 tokens, but this model has positions for 24"):
        Llama(TINY)(torch.zeros(1, 25, dtype=torch.long))


@pytest.mark.system("llama", "trained")
def test_a_small_one_is_causal_and_learns() -> None:
    torch.manual_seed(0)
    model, x = Llama(TINY), tokens()
    changed = x.clone()
    changed[:, 9:] = (x[:, 9:] + 1) % 61
    with torch.no_grad():
        assert torch.equal(model(x)[:, :9], model(changed)[:, :9])
        assert not torch.allclose(model(x)[:, 9:], model(changed)[:, 9:])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(40):
        loss = torch.nn.functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.5
