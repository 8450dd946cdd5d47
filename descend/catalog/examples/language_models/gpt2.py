"""Worked examples of causal language models: sizes, loss, perplexity."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.data.text.plain import window
from descend.losses.classification import nll
from descend.losses.language import causal_lm_loss, token_losses
from descend.metrics.language import perplexity, sequence_perplexity
from descend.models.gpt2 import GPT2, SIZES, Block, GPT2Config
from descend.theory.residual import residual_layers, residual_scale


@cache
def sizes(config: GPT2Config) -> tuple[int, int]:
    """All parameters of the model, and those in matrices: built without memory for the numbers, then counted."""
    with torch.device("meta"):
        parameters = list(GPT2(config).parameters())
    return sum(p.numel() for p in parameters), sum(p.numel() for p in parameters if p.dim() > 1)


# Sizes


def s940_size(i: Inputs) -> Inputs:
    config = GPT2Config(vocab=i["vocab"], context=i["context"], width=i["d_model"], depth=i["layers"], heads=1)
    return {"parameters": sizes(config)[0]}


def vom_gpt3(i: Inputs) -> Inputs:
    config = GPT2Config(vocab=i["vocab"], context=i["context"], width=i["d_model"], depth=i["N"], heads=i["h"])
    embeddings = sizes(replace(config, depth=0))[1]
    matrices = sizes(config)[1]
    with torch.device("meta"):
        block = Block(config.width, config.heads, 4 * config.width, config.dropout, config.eps)
    return {
        "params": matrices,
        "blocks_only": matrices - embeddings,
        "d_head": config.width // block.attn.heads,
        "dff_over_d": block.mlp.up.out_features / config.width,
    }


def gpt2_size(i: Inputs) -> Inputs:
    config = GPT2Config(vocab=i["vocab"], context=i["context_not_in_text"], width=i["d"], depth=i["layers"], heads=1)
    count, n = sizes(config)[0], residual_layers(i["layers"])
    return {
        "params": count,
        "params_millions": count / 1e6,
        "residual_layers": n,
        "residual_init_scale": residual_scale(n),
    }


def gpt2_against_gpt1(i: Inputs) -> Inputs:
    return {"ratio": sizes(SIZES["gpt2-xl"])[0] / i["gpt1"]}


# The loss


def next_token_pairs(i: Inputs) -> Inputs:
    words = i["sentence"]
    batch = window(torch.arange(len(words)), torch.tensor([0]), context=len(words) - 1)
    pairs = [[" ".join(words[: int(x) + 1]), words[int(y)]] for x, y in zip(batch["x"][0], batch["y"][0], strict=True)]
    # What DLN prints leaves one step out.
    printed = [["The", "cat"], ["The cat", "sat"], ["The cat sat", "on"], ["The cat sat on the", "mat"]]
    return {"pairs": pairs, "missing": [pair for pair in pairs if pair not in printed]}


def output_gradients(i: Inputs) -> Inputs:
    """Drawn in this order, h, W, b; the four targets are those that give the book's loss."""
    torch.manual_seed(i["torch_seed"])
    shapes = ((i["T"], i["d"]), (i["V"], i["d"]), (i["V"],))
    h, w, b = (torch.randn(shape, dtype=torch.float64).requires_grad_() for shape in shapes)
    y = torch.tensor([0, 3, 5, 2])
    logits = h @ w.T + b
    loss = causal_lm_loss(logits[None], y[None])
    by_h, by_w, by_b = torch.autograd.grad(loss, (h, w, b), retain_graph=True)
    miss = (logits.softmax(-1) - torch.eye(i["V"], dtype=torch.float64)[y]).detach() / i["T"]
    return {
        "W_agrees": torch.allclose(by_w, miss.T @ h),
        "b_agrees": torch.allclose(by_b, miss.sum(0)),
        "h_agrees": torch.allclose(by_h, miss @ w),
        "loss": loss.detach(),
    }


def chain_rule(i: Inputs) -> Inputs:
    """The sum of the token losses is −log of the joint probability, whatever the three values are."""
    joint = real(i["joint"])
    first, second = joint.sum((1, 2)), joint.sum(2) / joint.sum((1, 2))[:, None]
    third = joint / joint.sum(2, keepdim=True)
    errors: list[Tensor] = []
    for a, b, c in torch.cartesian_prod(*(torch.arange(2),) * 3).tolist():
        logits = torch.stack([first, second[a], third[a, b]]).log()
        total = token_losses(logits[None], torch.tensor([[a, b, c]])).sum()
        errors.append(((-total).exp() - joint[a, b, c]).abs())
    return {
        "p_x1": first,
        "p_x2_given_x1": second,
        "p_x3_given_x12": third,
        "max_abs_error": torch.stack(errors).max(),
    }


# Perplexity


def mf_perplexity(i: Inputs) -> Inputs:
    p = real(i["token_probs"])
    losses = nll(torch.stack([p, 1 - p], -1).log(), torch.zeros(len(p), dtype=torch.long))
    v = i["uniform_V"]
    uniform = token_losses(torch.zeros(1, 2, v, dtype=torch.float64), torch.tensor([[0, v - 1]]))
    return {
        "lbar_bits": losses.mean() / math.log(2),
        "PPL": sequence_perplexity([losses]),
        "PPL_from_nats": perplexity(losses),
        "PPL_uniform": perplexity(uniform),
    }


def ppl_10(i: Inputs) -> Inputs:
    p = real(i["p"])
    return {"PPL": perplexity(nll(p.log().expand(i["T"], -1), torch.arange(i["T"])))}


EXAMPLES: dict[str, Compute] = {
    "S940-5.6-gpt2-parameters": s940_size,
    "S940-5.6-gpt3-parameters": s940_size,
    "VOM-12.8-gpt3": vom_gpt3,
    "DLN-GPT2-small-params": gpt2_size,
    "DLN-GPT2-medium-params": gpt2_size,
    "DLN-GPT2-large-params": gpt2_size,
    "DLN-GPT2-xl-params": gpt2_size,
    "DLN-GPT2-vs-GPT1": gpt2_against_gpt1,
    "DLN-GPT-next-token-pairs": next_token_pairs,
    "MF-33.7.2-gradients": output_gradients,
    "DLD-12.7-chain-rule": chain_rule,
    "MF-33.9-perplexity": mf_perplexity,
    "VOM-13.1.3-ppl10": ppl_10,
}

SET_ASIDE: dict[str, str] = {}
