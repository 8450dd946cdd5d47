"""Worked examples of encoder-decoder-transformer, teacher-forcing and cross-attention."""

from __future__ import annotations

from functools import cache
from typing import cast

import torch
from torch import nn

from descend.catalog.examples import Compute, Inputs, real
from descend.models.transformer import Transformer, TransformerConfig, decoder_block
from descend.nn.encoder import EncoderBlock
from descend.nn.mlp import MLP
from descend.ops.attention.dot_product import attention, unscaled_attention
from descend.ops.teacher_forcing import shift_right
from descend.theory.encoder_decoder import encoder_block_flops, quadratic_from


def count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@cache
def build(config: TransformerConfig) -> Transformer:
    """The model without memory for its numbers."""
    with torch.device("meta"):
        return Transformer(config)


def blocks(model: Transformer) -> int:
    return count(model.encoder) + count(model.blocks)


def dln_config(i: Inputs) -> Inputs:
    sizes = {"vocab": i["K"], "width": i["D"], "depth": i["N"], "heads": i["H"], "hidden": i["d_ff_not_in_text"]}
    tied = build(TransformerConfig(**sizes))
    untied = build(TransformerConfig(**sizes, tied="none", head_bias=True))
    cross = tied.decoder_layers[0].cross
    return {
        "D_Q": cross.head_size,
        "concat": cross.heads * cross.head_size,
        "encoder_block_params": count(tied.encoder.blocks[0]),
        "decoder_block_params": count(tied.decoder_layers[0]),
        "stacks_params": blocks(tied),
        "total_one_shared_tied_embedding_K32000": count(tied),
        "total_two_embeddings_plus_separate_head_with_bias": count(untied),
    }


def vom(i: Inputs, tied: str = "embeddings") -> Transformer:
    """The base size as VOM defines it: no attention biases, an output bias."""
    sizes = {"vocab": i["V"], "width": i["d_model"], "depth": i["N"], "hidden": i["d_ff"]}
    return build(TransformerConfig(**sizes, attention_bias=False, head_bias=True, tied=tied))


def vom_config(i: Inputs) -> Inputs:
    block = vom(i).decoder_layers[0]
    mlp = cast("MLP", block.mlp)
    return {
        "h_dk": block.attn.heads * i["d_k"],
        "dff_over_dmodel": mlp.up.out_features / mlp.up.in_features,
    }


def embedding(i: Inputs) -> Inputs:
    model = build(TransformerConfig(vocab=i["V"], width=i["d_model"], depth=0))
    return {"params": count(model.embed)}


def encoder_block(i: Inputs) -> Inputs:
    with torch.device("meta"):
        block = EncoderBlock(i["d_model"], 8, i["d_ff"], nn.ReLU(), attention_bias=False)
    biases = count(block.mlp) - sum(p.numel() for p in block.mlp.parameters() if p.dim() > 1)
    return {"params": count(block) - biases, "with_ffn_biases": count(block), "missing_ffn_biases": biases}


def all_blocks(i: Inputs) -> Inputs:
    with torch.device("meta"):
        encoder = EncoderBlock(i["d_model"], 8, i["d_ff"], nn.ReLU(), attention_bias=False)
        decoder = decoder_block(i["d_model"], 8, i["d_ff"], 0.0, 1e-6, attention_bias=False)
    return {
        "params": i["N"] * (count(encoder) + count(decoder)),
        "12_times_text_formula": 2 * i["N"] * encoder_block(i)["params"],
        "encoder_block": count(encoder),
        "decoder_block": count(decoder),
    }


def totals(i: Inputs) -> Inputs:
    shared = vom(i)
    text = 2 * count(shared.embed) + all_blocks(i)["12_times_text_formula"]
    return {
        "total": count(shared),
        "sum_of_printed_parts": 25 + 36 + 25,
        "with_separate_source_and_target_embeddings": count(vom(i, "none")),
        "all_three_tied_with_output_bias": count(vom(i, "all")),
        "text_formula_unrounded": text,
    }


def flop_share(i: Inputs) -> Inputs:
    flops = encoder_block_flops(i["n"], i["d_model"], i["d_ff"])
    return {
        "total_is_O(n^2 d N)": flops.mixing > flops.projections + flops.feed_forward,
        "attention_scores_and_mix": flops.mixing,
        "qkvo_projections": flops.projections,
        "ffn": flops.feed_forward,
        "share_attention": flops.mixing / flops.total,
        "n_where_attention_equals_rest": float(quadratic_from(i["d_model"], i["d_ff"])),
    }


def right_shift(i: Inputs) -> Inputs:
    words = ["<START>", *dict.fromkeys(i["target"])]
    y = torch.tensor([[words.index(word) for word in i["target"]]])
    read = shift_right(y, words.index("<START>"))
    real_places = (y[0] != words.index("<PAD>")).nonzero().flatten()
    return {"decoder_input": [words[n] for n in read[0].tolist()], "loss_positions_0based": real_places.tolist()}


def external_query(i: Inputs) -> Inputs:
    q = real([i["question"]]) @ real(i["W_q"]).T
    k, v = (real(i["T"]) @ real(i[w]).T for w in ("W_k", "W_v"))
    output, weights = unscaled_attention(q, k, v)
    return {"weights": weights[0], "output": output[0], "weights_with_sqrt_m": attention(q, k, v)[1][0]}


EXAMPLES: dict[str, Compute] = {
    "DLN-Transformer-config": dln_config,
    "VOM-12.1-config": vom_config,
    "VOM-12.8-embedding-params": embedding,
    "VOM-12.8-encoder-block": encoder_block,
    "VOM-12.8-blocks": all_blocks,
    "VOM-12.8-total": totals,
    "VOM-12.8-flop-share": flop_share,
    "DLN-Training-shift-right": right_shift,
    "DLD-5.8-external-query": external_query,
}

SET_ASIDE: dict[str, str] = {}
