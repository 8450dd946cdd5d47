"""Legal configurations that no published checkpoint has: each folder of transformers opens here with equal outputs,
what is saved here opens there, and what is not supported is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from torch import Tensor

import descend
from descend.errors import Mistake
from tests.models.peers import check_both_ways, check_generation, random_peer

TEXT = {
    "vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40,
    "max_position_embeddings": 24,
}  # fmt: skip
GPT = {"vocab_size": 61, "n_positions": 24, "n_embd": 32, "n_layer": 2, "n_head": 4}
T5 = {"vocab_size": 61, "d_model": 32, "d_kv": 6, "d_ff": 40, "num_layers": 2, "num_heads": 4}
IMAGE = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40, "image_size": 12,
    "patch_size": 4,
}  # fmt: skip
ODD = {"layer_norm_eps": 1e-3, "pad_token_id": 5}
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "rope_theta": 1e3, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 12,
}  # fmt: skip
WRITERS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "gpt2, hidden = 4 width": (hf.GPT2LMHeadModel, hf.GPT2Config, {**GPT, "n_inner": 128}),
    "gpt2, hidden of its own": (hf.GPT2LMHeadModel, hf.GPT2Config, {**GPT, "n_inner": 50, "layer_norm_epsilon": 1e-3}),
    "openai_gpt": (hf.OpenAIGPTLMHeadModel, hf.OpenAIGPTConfig, {**GPT, "layer_norm_epsilon": 1e-3}),
    "llama, one key head": (
        hf.LlamaForCausalLM,
        hf.LlamaConfig,
        {**TEXT, "num_key_value_heads": 1, "rms_norm_eps": 1e-3, "rope_parameters": LLAMA3},
    ),
    "llama, head size": (hf.LlamaForCausalLM, hf.LlamaConfig, {**TEXT, "num_key_value_heads": 2, "head_dim": 12}),
    "llama, tied": (hf.LlamaForCausalLM, hf.LlamaConfig, {**TEXT, "tie_word_embeddings": True}),
    "mistral, tied": (
        hf.MistralForCausalLM,
        hf.MistralConfig,
        {**TEXT, "num_key_value_heads": 2, "tie_word_embeddings": True, "head_dim": 12, "sliding_window": 4},
    ),
    "mixtral, tied": (
        hf.MixtralForCausalLM,
        hf.MixtralConfig,
        {
            **TEXT,
            "num_key_value_heads": 2,
            "num_local_experts": 3,
            "num_experts_per_tok": 3,
            "tie_word_embeddings": True,
        },
    ),
    "mamba": (
        hf.MambaForCausalLM,
        hf.MambaConfig,
        {"vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 5, "expand": 3, "conv_kernel": 3},
    ),
}
READERS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "bert": (hf.BertForMaskedLM, hf.BertConfig, {**TEXT, **ODD, "type_vocab_size": 3}),
    "roberta": (hf.RobertaForMaskedLM, hf.RobertaConfig, {**TEXT, **ODD, "type_vocab_size": 1}),
    "longformer": (hf.LongformerForMaskedLM, hf.LongformerConfig, {**TEXT, **ODD, "attention_window": [4, 6]}),
    "bigbird": (hf.BigBirdForMaskedLM, hf.BigBirdConfig, {**TEXT, **ODD, "attention_type": "original_full"}),
}
SEERS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "vit": (hf.ViTForImageClassification, hf.ViTConfig, {**IMAGE, "layer_norm_eps": 1e-3, "num_channels": 1}),
    "deit": (hf.DeiTForImageClassification, hf.DeiTConfig, {**IMAGE, "layer_norm_eps": 1e-3}),
    "beit": (
        hf.BeitForImageClassification,
        hf.BeitConfig,
        {**IMAGE, "use_shared_relative_position_bias": True, "use_absolute_position_embeddings": True},
    ),
}


def random_tokens(seed: int = 0) -> Tensor:
    return torch.randint(6, 61, (2, 9), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", [*WRITERS, *READERS])
def test_texts(name: str, tmp_path: Path) -> None:
    peer, config, values = (WRITERS | READERS)[name]
    theirs, tokens = random_peer(peer, config(**values)), random_tokens()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(tokens), lambda m: m(tokens).logits)
    if name in WRITERS:
        check_generation(theirs, ours, [[7, 8, 9], [11]], 5)


@pytest.mark.parametrize("name", SEERS)
def test_images(name: str, tmp_path: Path) -> None:
    peer, config, values = SEERS[name]
    theirs = random_peer(peer, config(**values))
    x = torch.randn(2, theirs.config.num_channels, 12, 12, generator=torch.Generator().manual_seed(0))
    check_both_ways(theirs, tmp_path, lambda m: m(x), lambda m: m(x).logits)


@pytest.mark.parametrize("kind", ["relu", "gated-gelu"])
@pytest.mark.parametrize("tied", [True, False])
def test_t5_whose_head_is_left_out_of_the_file(tied: bool, kind: str, tmp_path: Path) -> None:
    """transformers 5 ties a T5 that was asked not to be, and leaves out the scale that belongs to a tied one."""
    config = hf.T5Config(**T5, feed_forward_proj=kind, tie_word_embeddings=tied, num_decoder_layers=3)
    theirs, source, target = random_peer(hf.T5ForConditionalGeneration, config), random_tokens(1), random_tokens(2)
    assert theirs.config.scale_decoder_outputs is tied
    ours = check_both_ways(
        theirs, tmp_path, lambda m: m(source, target), lambda m: m(input_ids=source, decoder_input_ids=target).logits
    )
    assert ours.config.tied is tied


@pytest.mark.parametrize(
    ("peer", "config", "values", "message"),
    [
        (hf.GPT2LMHeadModel, hf.GPT2Config, {**GPT, "activation_function": "relu"}, "activation_function = 'relu'"),
        (hf.GPT2LMHeadModel, hf.GPT2Config, {**GPT, "tie_word_embeddings": False}, "tie_word_embeddings = False"),
        (hf.LlamaForCausalLM, hf.LlamaConfig, {**TEXT, "mlp_bias": True}, "mlp_bias = True is not supported"),
        (hf.BertForMaskedLM, hf.BertConfig, {**TEXT, "hidden_act": "silu"}, "hidden_act 'silu'"),
        (hf.ViTForImageClassification, hf.ViTConfig, {**IMAGE, "qkv_bias": False}, "qkv_bias = False"),
        (
            hf.BeitForImageClassification,
            hf.BeitConfig,
            {**IMAGE, "layer_scale_init_value": 0.0},
            "without a layer scale",
        ),
        (hf.MambaForCausalLM, hf.MambaConfig, {"hidden_size": 32, "vocab_size": 61, "use_bias": True}, "use_bias"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(
    peer: Any, config: Any, values: dict[str, Any], message: str, tmp_path: Path
) -> None:
    peer(config(**{**values, "num_hidden_layers": 1})).save_pretrained(tmp_path)
    with pytest.raises(Mistake, match=message):
        descend.load(tmp_path)
