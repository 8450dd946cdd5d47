"""Mistral against transformers' own, both ways: the window in the full pass, and a cache that forgets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.models.mistral import TINY, Mistral, MistralConfig
from tests.close import close
from tests.models.peers import check_both_ways, check_generation, random_peer

transformers = pytest.importorskip("transformers")


def peer(window: int | None = 5, head_size: int | None = None) -> Any:
    config = transformers.MistralConfig(
        vocab_size=61, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, sliding_window=window, head_dim=head_size, bos_token_id=0,
        eos_token_id=0,
    )  # fmt: skip
    return random_peer(transformers.MistralForCausalLM, config)


def tokens(t: int = 17) -> Tensor:
    return torch.randint(61, (3, t), generator=torch.Generator().manual_seed(1))


@pytest.mark.system("causal-sliding-window")
@pytest.mark.parametrize(("window", "head_size"), [(5, None), (16, None), (17, 16), (None, None)])
def test_both_ways(window: int | None, head_size: int | None, tmp_path: Path) -> None:
    theirs, x = peer(window, head_size), tokens()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(x).logits)
    assert ours.config.window == window
    ours(x).square().mean().backward()
    theirs(x).logits.square().mean().backward()
    close(ours.blocks[0].attn.k.weight.grad, theirs.model.layers[0].self_attn.k_proj.weight.grad)


@pytest.mark.system("causal-sliding-window", "rolling-cache")
@pytest.mark.system("causal-sliding-window")
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    "prompts",
    [[[5, 3, 9, 1]], [[7, 2], [4, 4, 8, 1, 30], [11, 60, 3]], [list(range(1, 14)), [9, 8, 7, 6, 5, 4, 3], [2]]],
    ids=["one", "padded", "longer than the window"],
)
def test_generation_beyond_the_window(prompts: list[list[int]], compiled: bool, tmp_path: Path) -> None:
    theirs = peer()
    theirs.save_pretrained(tmp_path)
    ours: Any = descend.load(tmp_path)
    decoder = ours.decoder()
    if not compiled:
        decoder.native = None
    ours.decoder = lambda: decoder
    check_generation(theirs, ours, prompts, 30)
    assert decoder.cache.kv.shape[4] == 16  # two windows, for 43 positions, in whole lines of the memory


@pytest.mark.system("causal-sliding-window", "rolling-cache")
@pytest.mark.system("causal-sliding-window")
def test_decoding_is_the_full_pass_and_rows_can_be_moved() -> None:
    torch.manual_seed(0)
    model, x = Mistral(TINY).eval(), tokens(24)
    decoder, order = model.decoder(), torch.tensor([2, 0, 1])
    found = [decoder.start(x[:, :7], torch.zeros(3, dtype=torch.long), 24)]
    found += [decoder.step(x[:, t]) for t in range(7, 15)]
    decoder.reorder(order)
    moved = [decoder.step(x[order, t]) for t in range(15, 24)]
    with torch.no_grad():
        full = model(x)
    close(torch.stack(found, 1), full[:, 6:15])
    close(torch.stack(moved, 1), full[order, 15:])


@pytest.mark.system("causal-sliding-window", "full")
@pytest.mark.system("causal-sliding-window")
def test_a_window_as_long_as_the_text_is_none() -> None:
    torch.manual_seed(0)
    model, x = Mistral(TINY), tokens(20)
    wide, open_ = (Mistral(MistralConfig(**{**vars(TINY), "window": w})) for w in (20, None))
    for other in (wide, open_):
        other.load_state_dict(model.state_dict())
    with torch.no_grad():
        close(wide(x), open_(x))
        close(model(x)[:, :5], open_(x)[:, :5])
        assert not torch.allclose(model(x)[:, 6:], open_(x)[:, 6:], atol=1e-4)
