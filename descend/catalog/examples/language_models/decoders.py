"""Worked examples of gpt-1, gpt-3, palm, llama, mixtral and autoregressive-factorization."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.models import model_class
from descend.models.gpt2 import GPT2Config
from descend.models.llama import SIZES as LLAMA
from descend.models.llama import LlamaConfig
from descend.models.mistral import MistralConfig
from descend.models.mixtral import Mixtral, MixtralConfig
from descend.models.openai_gpt import OpenAIGPTConfig
from descend.models.palm import SIZES as PALM
from descend.models.palm import PalmConfig
from descend.nn.attention.multi_head import Attention, CausalSelfAttention
from descend.nn.experts import total_and_active
from descend.nn.gated_mlp import hidden_size
from descend.sampling.table import next_token_table, rows_that_differ, sentence_probability
from descend.theory.attention import head_size
from descend.theory.experts import active_fraction, expert_fraction, relative_cost


@cache
def parameters(config: Any) -> int:
    """Of the model with this config, built without memory for the numbers."""
    kind = model_class(type(config).__module__.rpartition(".")[2])
    with torch.device("meta"):
        return sum(p.numel() for p in kind(config).parameters())


def gpt_1(i: Inputs) -> Inputs:
    def count(vocab: int) -> int:
        return parameters(OpenAIGPTConfig(vocab, i["context_not_in_text"], i["d"], i["layers"], i["heads"]))

    return {
        "params": count(i["vocab"]),
        "params_millions": count(i["vocab"]) / 1e6,
        "params_vocab_40478": count(OpenAIGPTConfig().vocab),
        "ff_over_d": i["ff"] / i["d"],
        "head_dim": head_size(i["d"], i["heads"]),
    }


def gpt_3(i: Inputs) -> Inputs:
    """Heads do not enter the count when they share the width: one of them, since two printed rows do not divide."""
    rows = i["configs_layers_d_heads_headdim_from_original_paper"]
    found = {
        name: parameters(GPT2Config(i["vocab"], i["context"], width, depth, heads=1))
        for name, (depth, width, _, _) in rows.items()
    }
    depth, width, heads, size = rows["XL"]
    with torch.device("meta"):
        wide, fitting = Attention(width, heads, head_size=size), CausalSelfAttention(width, 1)
    more = sum(p.numel() for p in wide.parameters()) - sum(p.numel() for p in fitting.parameters())
    return found | {"XL_if_24_heads_of_128_were_used": found["XL"] + depth * more}


def palm(i: Inputs) -> Inputs:
    def count(heads: int, size: int, hidden: int) -> int:
        return parameters(PalmConfig(i["vocab_from_paper"], 2048, i["d_model"], i["layers"], heads, size, hidden))

    size = head_size(i["d_model"], i["heads"])
    paper_heads = i["heads_from_paper"], i["head_dim_from_paper"]
    [hidden] = [c.hidden for c in PALM.values() if c.width == i["d_model"]]
    return {
        "params": count(i["heads"], size, i["d_ff"]),
        "params_book_dff_paper_heads": count(*paper_heads, i["d_ff"]),
        "params_original_paper": count(*paper_heads, hidden),
        "d_k_if_d_model_over_heads": size,
        "four_d_model": hidden,
    }


def palm_heads(i: Inputs) -> Inputs:
    size = PalmConfig().head_size
    return {
        "d_model_over_heads": [head_size(d, h) for d, h in zip(i["d_model"], i["heads"], strict=True)],
        "heads_if_head_size_256_and_H_dk_equals_d_model": [head_size(d, size) for d in i["d_model"]],
    }


def llama(i: Inputs) -> Inputs:
    config = LlamaConfig(
        i["vocab_from_paper"], width=i["d_model"], depth=i["layers"], heads=i["heads"], kv_heads=i["heads"],
        hidden=i["d_ff"], tied=i["tied_embeddings"],
    )  # fmt: skip
    return {
        "params": parameters(config),
        "head_dim": head_size(i["d_model"], i["heads"]),
        "dff_rule_2/3*4d_up_to_256": hidden_size(i["d_model"]),
    }


def sparse(i: Inputs, width: int, hidden: int) -> tuple[int, int, int]:
    """All parameters, the active ones, and those of one expert in one layer."""
    config = MixtralConfig(
        vocab=i["vocab"], width=width, depth=i["layers"], heads=i["heads"], kv_heads=i["kv_heads"], hidden=hidden,
        experts=i["experts"], active=i["top_k"],
    )  # fmt: skip
    with torch.device("meta"):
        model = Mixtral(config)
    experts, one = total_and_active(model.blocks[0].mlp.experts, 1)  # type: ignore[union-attr, arg-type]
    assert experts == i["experts"] * one
    return *total_and_active(model, i["top_k"]), one


def dln_mixtral(i: Inputs) -> Inputs:
    total, active, expert = sparse(i, i["d"], i["expert_ff"])
    dense = MistralConfig(
        vocab=i["vocab"], width=i["d"], depth=i["layers"], heads=i["heads"], kv_heads=i["kv_heads"],
        head_size=i["head_dim"], hidden=i["expert_ff"],
    )  # fmt: skip
    return {
        "params_per_expert_all_layers": expert * i["layers"],
        "total_params": total,
        "active_params": active,
        "one_expert_dense_model": parameters(dense),
        "naive_8x7": i["experts"] * 7e9,
        "active_fraction": active_fraction(active, total),
        "expert_fraction": expert_fraction(i["top_k"], i["experts"]),
    }


def mf_mixtral(i: Inputs) -> Inputs:
    total, active, expert = sparse(i, i["d_model"], i["d_ff"])
    return {"total": total, "active": active, "expert_params_per_layer": expert}


def mixtral_cost(i: Inputs) -> Inputs:
    base = i["active"]["LLaMA-2-13B"]
    return {name: relative_cost(active, base) for name, active in i["active"].items()} | {
        "LLaMA-2-70B_exact_params": parameters(LLAMA["llama-2-70b"]),
        "LLaMA-2-13B_exact_params": parameters(LLAMA["llama-13b"]),
    }


def next_word(i: Inputs) -> Inputs:
    one, other = i["3.2"], i["3.12"]
    p = real(list(one.values()))
    words = [*one, "all others"]
    listed = dict(next_token_table(torch.cat([p, 1 - p.sum(0, keepdim=True)]).log(), words))
    return {
        "tables_agree": not rows_that_differ(one, other),
        "listed_mass": 1 - listed["all others"],
        "rows_that_differ": rows_that_differ(one, other),
    }


def sentence(i: Inputs) -> Inputs:
    return {"P": sentence_probability(real(i["conditionals"]))}


EXAMPLES: dict[str, Compute] = {
    "DLN-GPT-config": gpt_1,
    "DLN-GPT3-params": gpt_3,
    "MF-38.7-PaLM-8B": palm,
    "MF-38.7-PaLM-62B": palm,
    "MF-38.7-PaLM-540B": palm,
    "MF-38.7-PaLM-heads": palm_heads,
    "MF-39.6-LLaMA-7B": llama,
    "MF-39.6-LLaMA-13B": llama,
    "MF-39.6-LLaMA-33B": llama,
    "MF-39.6-LLaMA-65B": llama,
    "DLN-MoE-mixtral": dln_mixtral,
    "MF-40.7-mixtral-params": mf_mixtral,
    "MF-40.8-cost": mixtral_cost,
    "VOM-3.2-next-word-table": next_word,
    "VOM-3.12-sentence": sentence,
}

SET_ASIDE: dict[str, str] = {}
