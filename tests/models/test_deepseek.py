"""DeepSeek-V2 and V3 against transformers' own, both ways: latent attention, both routers, decoding with latents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.errors import Mistake
from tests.close import close
from tests.models.peers import check_both_ways, check_generation, random_peer

transformers = pytest.importorskip("transformers")

SMALL: dict[str, Any] = {
    "vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "moe_intermediate_size": 16, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 64, "kv_lora_rank": 16,
    "q_lora_rank": 12, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 6, "n_routed_experts": 8,
    "num_experts_per_tok": 3, "n_shared_experts": 2, "first_k_dense_replace": 1, "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip
YARN = {
    "rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 4.0,
    "beta_slow": 1.0, "mscale": 0.9, "mscale_all_dim": 0.7,
}  # fmt: skip
GROUPS = {"topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2, "routed_scaling_factor": 3.0}
V2: dict[str, dict[str, Any]] = {
    "greedy": {"topk_method": "greedy"},
    "groups": GROUPS,
    "lite": {"q_lora_rank": None, "v_head_dim": 12},
    "yarn": {**GROUPS, "rope_parameters": YARN},
}


def peer(name: str) -> Any:
    if name == "v3":
        config = transformers.DeepseekV3Config(**SMALL, n_group=4, topk_group=2, rope_parameters=YARN)
        model = random_peer(transformers.DeepseekV3ForCausalLM, config)
        for layer in model.model.layers[1:]:
            layer.mlp.gate.e_score_correction_bias.copy_(torch.linspace(-0.3, 0.3, 8))
        return model
    config = transformers.DeepseekV2Config(**{**SMALL, **V2[name]})
    return random_peer(transformers.DeepseekV2ForCausalLM, config)


def tokens() -> Tensor:
    return torch.randint(61, (3, 21), generator=torch.Generator().manual_seed(1))


@pytest.mark.system("multi-head-latent-attention", "model")
@pytest.mark.system("multi-head-latent-attention")
@pytest.mark.system("mixture-of-experts")
@pytest.mark.system("rope-scaling")
@pytest.mark.parametrize("name", [*V2, "v3"])
def test_both_ways(name: str, tmp_path: Path) -> None:
    theirs, x = peer(name), tokens()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(x).logits)
    ours(x).square().mean().backward()
    theirs(x).logits.square().mean().backward()
    their_layer = theirs.model.layers[1]
    close(ours.blocks[1].attn.kv_down.weight.grad, their_layer.self_attn.kv_a_proj_with_mqa.weight.grad)
    close(ours.blocks[1].mlp.router.gate.weight.grad, their_layer.mlp.gate.weight.grad, loosen=5)  # sums of many terms


@pytest.mark.system("multi-head-latent-attention", "cache")
@pytest.mark.system("multi-head-latent-attention")
@pytest.mark.parametrize("name", ["groups", "yarn", "v3"])
@pytest.mark.parametrize("prompts", [[[5, 3, 9, 1]], [[7, 2], [4, 4, 8, 1, 30], [11, 60, 3]]], ids=["one", "padded"])
def test_generation(name: str, prompts: list[list[int]], tmp_path: Path) -> None:
    theirs = peer(name)
    theirs.save_pretrained(tmp_path)
    ours: Any = descend.load(tmp_path)
    check_generation(theirs, ours, prompts, 25)
    decoder = ours.decoder()
    decoder.start(torch.tensor([[1, 2]]), torch.zeros(1, dtype=torch.long), 9)
    assert decoder.cache.kv.shape == (
        3,
        1,
        1,
        1,
        16,
        16 + 4,
    )  # d_c + d_R numbers for a token and layer


def test_an_unknown_way_of_routing_is_named(tmp_path: Path) -> None:
    theirs = peer("greedy")
    theirs.config.topk_method = "noaux_tc"
    theirs.save_pretrained(tmp_path)
    with pytest.raises(Mistake, match="topk_method 'noaux_tc'"):
        descend.load(tmp_path)
