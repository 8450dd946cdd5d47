"""Worked examples of bert, mlm and bert-feature-extraction."""

from __future__ import annotations

from functools import cache
from typing import cast

import torch

from descend.catalog.examples import Compute, Inputs
from descend.data.text.masking import Masking
from descend.losses.masked import masked_lm_gradients, masked_lm_loss
from descend.models.bert import Bert, BertConfig, BertForPreTraining
from descend.nn.encoder import EncoderBlock
from descend.nn.layer_mix import STRATEGIES
from descend.sampling.fill import blanks


@cache
def count(config: BertConfig) -> tuple[int, int, int]:
    """Parameters without the pooler, with it, and with the heads of pre-training; built without memory for them."""
    with torch.device("meta"):
        bare, whole = Bert(config), BertForPreTraining(config)
    with_pooler = sum(p.numel() for p in bare.parameters())
    pooler = sum(p.numel() for p in bare.pooler.parameters())
    return with_pooler - pooler, with_pooler, sum(p.numel() for p in whole.parameters())


def size(i: Inputs) -> Inputs:
    config = BertConfig(
        i["vocab_not_in_text"], i["positions_not_in_text"], i["d"], i["layers"], i["heads"], i["ff_not_in_text"],
        i["segments"],
    )  # fmt: skip
    encoder, with_pooler, with_heads = count(config)
    with torch.device("meta"):
        head_size = cast("EncoderBlock", Bert(config).encoder.blocks[0]).attn.head_size
    return {
        "encoder_only": encoder,
        "with_pooler": with_pooler,
        "with_pooler_and_pretraining_heads": with_heads,
        "with_pooler_millions": with_pooler / 1e6,
        "head_dim": head_size,
    }


# Masks


def positions(i: Inputs) -> Inputs:
    """The words' numbers are their places in the list of different words."""
    words = sorted(set(i["tokens"]))
    found = blanks(torch.tensor([words.index(word) for word in i["tokens"]]), words.index("<mask>"))
    return {"positions": found + 1, "outputs_in_loss": len(found)}


def rates(i: Inputs) -> Inputs:
    to_mask, to_random, kept = Masking(i["select"], i["mask"], i["random"]).shares()
    return {
        "overall_mask": to_mask,
        "overall_random": to_random,
        "overall_unchanged": kept,
        "split_sum": (to_mask + to_random + kept) / i["select"],
    }


def fractions(i: Inputs) -> Inputs:
    masking = Masking(i["p_mask"], *i["split"][:2])
    to_mask, to_random, kept = masking.shares()
    return {
        "p_mask": to_mask + to_random + kept,
        "share_MASK": to_mask,
        "share_random": to_random,
        "share_kept": kept,
        "prob_no_position_selected_T5": masking.nothing_chosen(5),
        "prob_no_position_selected_T20": masking.nothing_chosen(20),
    }


def vom_shares(i: Inputs) -> Inputs:
    shares = Masking(i["select"], *i["split"][:2]).shares()
    return {
        "split_sum": sum(shares) / i["select"],
        "selected": sum(shares),
        "share_of_all_tokens_mask_random_keep": shares,
    }


def mask_sentence(i: Inputs) -> Inputs:
    words = i["sentence"].split()
    known = sorted(set(words))
    found = blanks(torch.tensor([known.index(word) for word in words]), known.index("<MASK>"))
    return {"tokens": len(words), "masks": len(found), "fraction": len(found) / len(words)}


def gradients(i: Inputs) -> Inputs:
    """Drawn in this order: h, W, b, targets. What 32.4.3 prints is |M| times the gradient of the mean."""
    torch.manual_seed(i["torch_seed"])
    shapes = ((i["T"], i["d"]), (i["V"], i["d"]), (i["V"],))
    h, w, b = (torch.randn(shape, dtype=torch.float64).requires_grad_() for shape in shapes)
    y, at = torch.randint(i["V"], (i["T"],)), torch.zeros(i["T"], dtype=torch.bool)
    at[i["mask_set"]] = True
    loss = masked_lm_loss((h @ w.T + b)[None], y[None], at[None])
    by_h, by_w = torch.autograd.grad(loss, (h, w))
    with torch.no_grad():
        right = masked_lm_gradients(h, w, b, y, at)
    printed_w, printed_h = right.w * at.sum(), right.h * at.sum()
    return {
        "ratio_autograd_to_32.4.3_W": (by_w / printed_w).mean(),
        "ratio_autograd_to_32.4.3_h": (by_h[at] / printed_h[at]).mean(),
        "one_over_M": 1 / len(i["mask_set"]),
        "34.4.3_form_agrees": torch.allclose(by_w, right.w) and torch.allclose(by_h, right.h),
    }


# Features


def features(i: Inputs) -> Inputs:
    base = BertConfig()
    layers = [torch.zeros(1, 1, base.width)] * (base.depth + 1)
    best = max(i["all_rows"].values())
    return {
        "gap": i["finetune_base"] - best,
        "gap_to_large": i["finetune_large"] - best,
        "concat_feature_dim": STRATEGIES["concat, last four"](base.depth)(layers).shape[-1],
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-BERT-base-params": size,
    "DLN-BERT-large-params": size,
    "DLN-BERT-mlm-positions": positions,
    "DLN-BERT-mlm-rates": rates,
    "MF-32.4.1-mask-fractions": fractions,
    "VOM-13.2.1-mask-shares": vom_shares,
    "DLD-7.1-mask-sentence": mask_sentence,
    "MF-32.4.3-mlm-gradients": gradients,
    "DLN-BERT-features-gap": features,
}

SET_ASIDE: dict[str, str] = {}
